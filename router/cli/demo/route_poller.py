"""Ask routers for their routes again and again: `python -m router.cli.demo.route_poller PAUSE_S A=URL B=URL ...`.

Each answer of all is a line of JSON: `at` (seconds, monotonic) and `routes`. A process of its own, since a blocking
connection of proton and all that belongs to it must stay in one thread.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping

from router.cli.demo.reported_routes import RouteEntry, to_json
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError

ANSWER_S = 5.0


def main(pause_s: float, urls: Mapping[str, str]) -> None:
    """Print what the routers tell of their routes, until killed.

    Args:
        pause_s: seconds between two looks.
        urls: of the routers, by id.
    """
    clients: dict[str, ManagementClient] = {}
    while True:
        routes = {}
        for router, url in urls.items():
            try:
                if router not in clients:
                    clients[router] = ManagementClient(url, timeout_s=ANSWER_S)
                routes[router] = query(clients[router], router)
            except ManagementError:
                clients.pop(router, None)  # it does not run yet
        print(json.dumps({"at": time.monotonic(), "routes": to_json(routes)}), flush=True)
        time.sleep(pause_s)


def query(client: ManagementClient, router: str) -> dict[str, RouteEntry]:
    """The routes of *router*.

    Raises:
        ManagementError: it does not answer.
    """
    nodes = client.query("router.node", ("id", "nextHop", "cost"))
    return {
        node["id"]: RouteEntry(next_hop=node["nextHop"], cost=node["cost"])
        for node in nodes
        if node["id"] != router and node["cost"] is not None
    }


if __name__ == "__main__":
    main(float(sys.argv[1]), dict(argument.split("=", 1) for argument in sys.argv[2:]))
