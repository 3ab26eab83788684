"""What if a router of this mesh died? The mesh's own control planes answer, under virtual time.

    python examples/what_if.py examples/meshes/line.yaml --kill B

Starts one control plane for each router of the file, in this process and without sockets, lets them converge, ends one
of them at once and tells how long the others needed and who has lost whom. The same code runs in the real routers.
"""

from __future__ import annotations

import argparse
import math
import sys
from itertools import combinations

import networkx as nx

from mesh_config.findings import SettingsError
from mesh_config.loader import load_mesh
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, settled

LIMIT_S = 120.0


def converge(mesh: Mesh) -> float:
    """Run until every control plane knows the paths that networkx finds. Returns: virtual seconds."""
    took_s = mesh.run_until_true(settled(mesh), limit_s=LIMIT_S, step_s=0.001)
    if took_s == math.inf:
        sys.exit(f"after {LIMIT_S:g} s the control planes have other paths: {'; '.join(differences(mesh))}")
    return took_s


def main() -> None:
    """Read the arguments and answer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mesh", help="mesh file")
    parser.add_argument("--kill", metavar="ROUTER", help="router that dies; each in turn when absent")
    parser.add_argument("--seed", type=int, default=1, help="of delays and jitter")
    arguments = parser.parse_args()
    try:
        settings = load_mesh(arguments.mesh)
    except SettingsError as error:
        sys.exit(str(error))
    if arguments.kill is not None and arguments.kill not in settings.routers:
        parser.error(f"no router {arguments.kill} in {arguments.mesh}, there are {', '.join(sorted(settings.routers))}")
    for victim in [arguments.kill] if arguments.kill else sorted(settings.routers):
        mesh = Mesh.of_settings(settings, seed=arguments.seed)
        cold = converge(mesh)
        mesh.kill(victim)
        healed = converge(mesh)
        graph = mesh.graph()
        lost = [f"{a}-{b}" for a, b in combinations(sorted(graph), 2) if not nx.has_path(graph, a, b)]
        print(f"{len(settings.routers)} routers converged in {1000 * cold:.0f} ms")
        print(f"{victim} dies: the others have their new paths after {1000 * healed:.0f} ms")
        print(f"pairs that have lost each other: {', '.join(lost) or 'none'}")


if __name__ == "__main__":
    main()
