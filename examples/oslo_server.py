"""An RPC server on oslo.messaging, attached to one router of a mesh.

    python oslo_server.py amqp://127.0.0.1:5672/ --name server-1

Several servers of one topic share its calls; each gets every fanout cast and can be called by its name. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

import oslo_messaging
from oslo_config import cfg


def say(line: str) -> None:
    """Print a line in one write: calls run in threads of their own, and `print` writes a line and its end apart."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class HelloSender:
    """What can be called. Every method has the caller's context and named arguments."""

    target = oslo_messaging.Target(version="1.0")

    def __init__(self, name: str) -> None:
        self.name = name

    def greet(self, context: dict[str, str], who: str) -> str:
        say(f"greet {who}")
        return f"hello {who}, this is {self.name}"

    def note(self, context: dict[str, str], text: str) -> None:
        say(f"note {text}")

    def fail(self, context: dict[str, str]) -> None:
        raise ValueError(f"{self.name} was told to fail")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672/", help="amqp://HOST:PORT[,HOST:PORT]/")
    parser.add_argument("--topic", default="greetings")
    parser.add_argument("--name", default="server-1")
    options = parser.parse_args()

    conf = cfg.CONF  # oslo.messaging looks for some of its options here only
    conf([])
    transport = oslo_messaging.get_rpc_transport(conf, url=options.url)
    target = oslo_messaging.Target(topic=options.topic, server=options.name)
    server = oslo_messaging.get_rpc_server(transport, target, [HelloSender(options.name)], executor="threading")

    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    server.start()
    say(f"{options.name} serves {options.topic}")
    is_over.wait()
    server.stop()
    server.wait()
    transport.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
