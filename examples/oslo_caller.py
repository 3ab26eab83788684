"""Calls, a cast and a fanout cast on oslo.messaging, from any router of the mesh that `oslo_server.py` is attached to.

    python oslo_caller.py amqp://127.0.0.1:5673/ --count 3

Ends with 1 when a call wasn't answered in time.
"""

from __future__ import annotations

import argparse
import sys
import time

import oslo_messaging
from oslo_config import cfg


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672/", help="amqp://HOST:PORT[,HOST:PORT]/")
    parser.add_argument("--topic", default="greetings")
    parser.add_argument("--server", help="call this one only")
    parser.add_argument("--count", type=int, default=3, help="calls")
    parser.add_argument("--timeout", type=float, default=10, metavar="SECONDS", help="for each call")
    options = parser.parse_args()

    conf = cfg.CONF  # oslo.messaging looks for some of its options here only
    conf([])
    transport = oslo_messaging.get_rpc_transport(conf, url=options.url)
    target = oslo_messaging.Target(topic=options.topic, version="1.0", server=options.server)
    client = oslo_messaging.get_rpc_client(transport, target, timeout=options.timeout)
    try:
        for number in range(options.count):
            begin = time.monotonic()
            answer = client.call({}, "greet", who=f"caller {number + 1}")
            print(f"{answer} ({1000 * (time.monotonic() - begin):.1f} ms)", flush=True)
        client.cast({}, "note", text="one of you gets this")
        client.prepare(fanout=True).cast({}, "note", text="all of you get this")
        print("cast to one, cast to all", flush=True)
    except oslo_messaging.MessagingTimeout:
        print(f"no answer within {options.timeout:g} s: is a server of {options.topic} attached?", file=sys.stderr)
        return 1
    except oslo_messaging.MessageDeliveryFailure as error:
        print(f"could not be delivered: {error}", file=sys.stderr)
        return 1
    finally:
        transport.cleanup()
    return 0


if __name__ == "__main__":
    sys.exit(main())
