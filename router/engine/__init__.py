"""Proton as an engine without sockets. Compiled modules find its functions where this import makes them visible."""

from router.binding import proton_functions as proton_functions
