"""amqp-mesh: a mesh of AMQP 1.0 message routers."""

from router.speed import SPEED as SPEED

__version__ = "0.2.0"
