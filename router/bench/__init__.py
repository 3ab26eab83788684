"""The benchmark: routers of its own or of others under load, and what that costs. Shown by `amqp-mesh bench`."""
