"""`amqp-mesh demo`: a mesh at work on one machine, or four routers to play with."""

from router.cli.demo.command import demo

__all__ = ["demo"]
