"""amqp-mesh: a mesh of AMQP 1.0 message routers."""

__version__ = "0.1.0"
