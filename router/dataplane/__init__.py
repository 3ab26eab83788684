"""The hot path. Its compiled modules find proton's functions in the process, where this import makes them visible."""

from router.binding import proton_functions as proton_functions
