"""The benchmark: routers of its own or of others under load, and what that costs. Shown by `amqp-mesh bench`."""

# Compiled modules find proton's functions once this has made them visible: it is loaded before any of them.
from router.binding import proton_functions as proton_functions
