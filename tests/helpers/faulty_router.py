"""A router whose code for passwords has faults: `python -m tests.helpers.faulty_router FAULTS run ...`.

*FAULTS*, words with commas, are functions that raise once they have done their work, so with all that they know in the
frames of the traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from router.cli import main
from router.security import credential_store, password_sources, sasl_client, scram, users

FUNCTIONS: Final[dict[str, list[tuple[Any, str]]]] = {
    "plain": [(users.Users, "check")],
    "scram": [(scram.ScramServer, "verify")],
    "connector": [(sasl_client.SaslClient, "received")],
    "secret": [(password_sources, "read_secret"), (credential_store, "read_secret")],
}


def faulty(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with a fault at its end."""

    def call(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        raise ZeroDivisionError(f"fault of {function.__qualname__}") from KeyError(type(result).__name__)

    return call


if __name__ == "__main__":
    for word in sys.argv.pop(1).split(","):
        for place, name in FUNCTIONS[word]:
            setattr(place, name, faulty(getattr(place, name)))
    main(prog_name="amqp-mesh")
