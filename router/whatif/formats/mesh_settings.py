"""The settings of a mesh, as `amqp-mesh run` takes them: routers with their sites, links with the cost that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from mesh_config import yaml_text
from mesh_config.check import check_file
from mesh_config.connector_matching import Link, links
from mesh_config.findings import SettingsError, has_errors
from mesh_config.loader import load_mesh
from mesh_config.models import MeshSettings, Treatment
from router.core.addressing.treatment_table import TreatmentTable
from router.whatif.formats.input_file import FileFindings, FilePath, read_text
from router.whatif.model.elements import LinkEdge, RouterNode, link_ids
from router.whatif.model.mesh_model import Model

TreatmentOf = Callable[[str], Treatment]
"""The treatment of an address, normalised."""


def read_mesh(path: FilePath, faults: FileFindings) -> tuple[Model, TreatmentOf]:
    """Model of a settings file, and the treatment that its routers give to an address.

    Args:
        path: of the file.
        faults: gets warnings.
    Raises: SettingsError when `amqp-mesh config check` finds an error in it.
    """
    findings = check_file(path)
    if has_errors(findings):
        raise SettingsError(findings)
    mesh = load_mesh(path)
    faults.extend(findings)
    return mesh_model(mesh), _Treatments(mesh, faults)


def mesh_model(mesh: MeshSettings) -> Model:
    """Model of the settings of a mesh: routers, sites, and links with the larger cost of both ends."""
    return Model(
        name=mesh.name,
        routers=[RouterNode(id=router.id, site=router.site) for router in mesh.routers.values()],
        links=[
            LinkEdge(id=text, a=link.pair[0], b=link.pair[1], cost=link.cost)
            for text, link in links_by_id(mesh).items()
        ],
    )


def links_by_id(mesh: MeshSettings) -> dict[str, Link]:
    """Links of the settings of a mesh by the ids that they have in its model."""
    between = [link for link in links(mesh) if link.is_between_routers and link.router != link.target]
    # Of parallel ones that which is in use has no number: the order is that in which routers choose.
    between.sort(key=lambda link: (link.pair, link.cost, mesh.routers[link.router].id, link.index))
    return dict(zip(link_ids(link.pair for link in between), between, strict=True))


def least_costs(mesh: MeshSettings) -> dict[str, int]:
    """Minimum costs, those of the listeners, by id of each link whose cost its connector can change alone.

    Of parallel links a cost decides which is used, and their ids: they are left out.
    """
    found = links_by_id(mesh)
    count = Counter(link.pair for link in found.values())
    return {text: link.listener.cost for text, link in found.items() if count[link.pair] == 1}


def with_link_costs(path: FilePath, costs: Mapping[str, int]) -> str:
    """The text of a settings file with other costs of links, each written at its connector; all else is as it was.

    Args:
        path: path of the file.
        costs: new costs by id of the link, for links of `least_costs`.
    Raises: SettingsError where the file isn't one of a mesh, or a connector can't be changed there.
    """
    faults = FileFindings(path)
    text, mesh = read_text(path), load_mesh(path)
    found = links_by_id(mesh)
    for name, cost in sorted(costs.items()):
        link = found[name]
        try:
            text = yaml_text.with_number(text, ("routers", link.router, "connectors", link.index, "cost"), cost)
        except KeyError:
            faults.fail(f"the connector of link `{name}` can't be changed", expected="a file with `routers`")
    return text


class _Treatments:
    """Treatments that the routers of a mesh give an address; a warning where they don't do the same."""

    def __init__(self, mesh: MeshSettings, faults: FileFindings) -> None:
        routers = sorted(mesh.routers.items())
        self._tables = {key: TreatmentTable(router.addresses, router.default_treatment) for key, router in routers}
        self._faults = faults

    def __call__(self, text: str) -> Treatment:
        found = {key: table.lookup(text) for key, table in self._tables.items()}
        router, treatment = next(iter(found.items()))
        other = next((key for key in found if found[key] is not treatment), None)
        if other is not None:
            self._faults.warn(
                f"address `{text}` is {treatment} at router `{router}` and {found[other]} at `{other}`;"
                f" it counts as {treatment}",
                expected="one treatment in the whole mesh",
            )
        return treatment


def built_in_treatment(text: str) -> Treatment:
    """The treatment of an address where no settings say anything."""
    return TreatmentTable((), Treatment.BALANCED).lookup(text)
