"""The hot path. Its compiled modules find proton's functions in the process, where this import makes them visible."""

from router.binding import handles as handles
