"""The settings of a mesh, as `amqp-mesh run` takes them: routers with their sites, links with the cost that counts."""

from __future__ import annotations

from collections.abc import Callable

from mesh_config.check import check_file
from mesh_config.connector_matching import links
from mesh_config.findings import SettingsError, has_errors
from mesh_config.loader import load_mesh
from mesh_config.models import MeshSettings, Treatment
from router.core.addressing.treatment_table import TreatmentTable
from router.whatif.formats.input_file import FileFindings, FilePath
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
    between = [link for link in links(mesh) if link.is_between_routers and link.router != link.target]
    # Of parallel ones that which is in use has no number: the order is that in which routers choose.
    between.sort(key=lambda link: (link.pair, link.cost, mesh.routers[link.router].id, link.index))
    ids = link_ids(link.pair for link in between)
    return Model(
        name=mesh.name,
        routers=[RouterNode(id=router.id, site=router.site) for router in mesh.routers.values()],
        links=[
            LinkEdge(id=text, a=link.pair[0], b=link.pair[1], cost=link.cost)
            for text, link in zip(ids, between, strict=True)
        ],
    )


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
                f" it is taken for {treatment}",
                expected="one treatment in the whole mesh",
            )
        return treatment


def built_in_treatment(text: str) -> Treatment:
    """The treatment of an address where no settings say anything."""
    return TreatmentTable((), Treatment.BALANCED).lookup(text)
