"""Settings to the YAML text of a file that loads back to equal settings."""

from __future__ import annotations

from typing import Any

from mesh_config import yaml_text
from mesh_config.connector_matching import link_address
from mesh_config.models import MeshSettings, RouterSettings
from mesh_config.structuring import unstructure


def render_router(router: RouterSettings, *, with_defaults: bool = True) -> str:
    """The file of one router.

    Args:
        router: complete settings of it.
        with_defaults: write every setting, also where it has the default value.
    """
    plain = unstructure(router, with_defaults=with_defaults)
    for connector, written in zip(router.connectors, plain.get("connectors", ()), strict=True):
        if connector.to is not None:
            # The file has no other router from which `to` could be resolved.
            written |= {"host": connector.host, "port": connector.port}
    return yaml_text.write({"router": plain})


def render_mesh(mesh: MeshSettings, *, with_defaults: bool = False) -> str:
    """The file of a whole mesh. `to` stands without host and port where they are the target's.

    Args:
        mesh: with ids that are the keys (`check_mesh` has no findings of severity error).
        with_defaults: write every setting, also where it has the default value.
    """
    routers = {key: _router(mesh, router, with_defaults) for key, router in mesh.routers.items()}
    return yaml_text.write({"mesh": {"name": mesh.name}, "routers": routers})


def _router(mesh: MeshSettings, router: RouterSettings, with_defaults: bool) -> dict[str, Any]:
    plain = unstructure(router, with_defaults=with_defaults)
    del plain["id"]
    for connector, written in zip(router.connectors, plain.get("connectors", ()), strict=True):
        if connector.to is None:
            continue
        address = {"host": connector.host, "port": connector.port}
        target = mesh.routers.get(connector.to)
        is_resolved = target is not None and link_address(target) == (connector.host, connector.port)
        for key, value in address.items():
            written.pop(key, None)
            if not is_resolved:
                written[key] = value
    return plain
