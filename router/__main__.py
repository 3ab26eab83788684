"""`python -m router` is `amqp-mesh`."""

from router.cli import main

main(prog_name="amqp-mesh")
