"""The mesh that is asked about, as it is and with what fails."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
from numpy.typing import NDArray

from router.whatif.analysis.connectivity import Connectivity, analyse
from router.whatif.analysis.offered_deliveries import deliveries
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.elements import LinkEdge, nearest_name
from router.whatif.model.mesh_model import Model
from router.whatif.model.value_kinds import names_of, shown
from router.whatif.pipeline.run_folder import is_split, model_of, variant_of
from router.whatif.pipeline.table_files import read_rows, read_table
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.wording import BASE, NAMED, failure, listed

Floats = NDArray[np.float64]
SHOWN: Final = 10
"""Rows of a listing, unless more are asked for."""


class BaseAndScenario:
    """A mesh in its base state and in one scenario.

    `base` and `now` are the same when nothing fails. Elements are named by their ids.
    """

    def __init__(
        self,
        model: Model,
        *,
        links: Sequence[str] = (),
        routers: Sequence[str] = (),
        row: dict[str, Any] | None = None,
        folder: Path | None = None,
        variant: str = BASE,
        origin: Model | None = None,
        is_split: bool = False,
    ) -> None:
        """Work out the base state, and the one in which some links and routers, given by their ids, have failed.

        Args:
            model: model in which nothing has failed.
            links: ids of the links that have failed.
            routers: ids of the routers that have failed.
            row: row of the table `scenario`, when it is a scenario of a run.
            folder: folder of the run, if there is one.
            variant: name of the variant of the run's model.
            origin: the run's model, if *model* is a variant of it.
            is_split: as `Kernel` has it.
        """
        self.model = model
        self.row = row
        self.folder = folder
        self.variant = variant
        self.links = tuple(sorted(links))
        self.routers = tuple(sorted(routers))
        self.is_split = is_split
        self.shown = SHOWN
        """Rows that listings of this have at most."""
        self.network = Network.of(model)
        if origin is not None:
            base = Kernel(Network.of(origin), is_split=is_split)
            self.network = self.network.measured_as(base.network, base.busiest())  # as in the run
        self.base = RoutingState(self.network, self._kernel())
        self.now = self.base
        if links or routers:
            places = [self.link(link) for link in self.links], [self.router(router) for router in self.routers]
            kernel = self._kernel()
            kernel.fail(*places)
            self.now = RoutingState(self.network, kernel, *places)

    @classmethod
    def of_run(
        cls, folder: Path, *, scenario: int | None = None, variant: str = BASE, down: Sequence[str] = ()
    ) -> BaseAndScenario:
        """Base and scenario of a run: one of its scenarios, or one of its variants with some things down.

        Raises: TableError for what is not there; SettingsError when the model can't be used.
        """
        origin = model_of(folder)
        common: dict[str, Any] = {"folder": folder, "origin": origin, "is_split": is_split(folder)}
        if scenario is None:
            model = variant_of(folder, origin, variant)
            return cls(model, variant=variant, **_named(model, down), **common)
        row = Outcomes.read(folder).row_of(scenario)
        if row is None:
            most = read_table(folder, "run").to_pylist()[0]["scenarios"] - 1
            raise TableError(f"no scenario {scenario} in {folder}; expected a number from 0 to {most}")
        if down:
            raise TableError("the scenario already says what is down; expected only one of the two")
        if variant not in (BASE, row["variant"]):
            raise TableError(f"scenario {scenario} is of variant `{row['variant']}`; expected it, or no variant")
        return cls(
            variant_of(folder, origin, row["variant"]),
            links=row["failed_links"],
            routers=row["failed_routers"],
            row=row,
            variant=row["variant"],
            **common,
        )

    @classmethod
    def of_model(cls, model: Model, *, down: Sequence[str] = ()) -> BaseAndScenario:
        """Base and scenario of a model with some things down. Raises: TableError for what is not there."""
        return cls(model, **_named(model, down))

    # Places and names

    def router(self, name: str) -> int:
        """The place of a router.

        Raises: TableError
        """
        return place_of("router", name, self.network.routers)

    def link(self, name: str) -> int:
        """The place of a link.

        Raises: TableError
        """
        return place_of("link", name, self.network.links)

    def address(self, text: str) -> int:
        """The place of an address.

        Raises: TableError
        """
        return place_of("address", text, self.network.addresses)

    def names(self, routers: Collection[int]) -> list[str]:
        """Ids of routers, sorted."""
        return [self.network.routers[router] for router in sorted(routers)]

    @property
    def is_failing(self) -> bool:
        """Whether anything is down."""
        return bool(self.links or self.routers)

    @property
    def failure(self) -> str:
        """Failed elements in words."""
        row = self.row or {"group": None, "family": ""}
        return failure(self.links, self.routers, row["group"], row["family"])

    def is_up(self, link: LinkEdge) -> bool:
        """Whether neither a link nor a router at one of its ends is down."""
        return link.id not in self.links and not {link.a, link.b} & set(self.routers)

    @cached_property
    def connectivity(self) -> Connectivity:
        """Connectivity of what is up; links by their places, and what is down has no links."""
        network = self.network
        up = [place for place, link in enumerate(self.model.links) if self.is_up(link)]
        ends = zip(network.link_a[up].tolist(), network.link_b[up].tolist(), strict=True)
        found = analyse(len(network.routers), list(ends))
        return attrs.evolve(found, bridges={up[link]: below for link, below in found.bridges.items()})

    # Numbers

    @contextmanager
    def trying(self, links: Sequence[str] = (), routers: Sequence[str] = ()) -> Iterator[RoutingState]:
        """The mesh with something down beside what is down already, for a while; one at a time."""
        places = (
            [self.link(link) for link in sorted({*self.links, *links})],
            [self.router(router) for router in sorted({*self.routers, *routers})],
        )
        self._spare.fail(*places)
        try:
            yield RoutingState(self.network, self._spare, *places)
        finally:
            self._spare.restore()

    def _kernel(self) -> Kernel:
        return Kernel(self.network, is_split=self.is_split)

    @cached_property
    def _spare(self) -> Kernel:
        return self._kernel()

    def by_link(self, routes: RoutingState) -> dict[str, float]:
        """Utilisation of each link that is up, in its busier direction."""
        busier = routes.kernel.utilisations().reshape(-1, 2).max(axis=1, initial=0.0)
        return dict(zip(self.network.links, busier.tolist(), strict=True))

    @cached_property
    def wanted_msgs_per_s(self) -> float:
        """Messages a second that should arrive; a multicast counts for each router with subscribers."""
        return deliveries(self.model)

    def rows(self, table: str, **values: object) -> list[dict[str, Any]]:
        """Rows of a table of the run that have these values; none without a run, or when it has no such table."""
        if self.folder is None or not (self.folder / table).is_dir():
            return []
        return read_rows(self.folder, table, values)

    def variant_rows(self, table: str, **values: object) -> list[dict[str, Any]]:
        """Rows of a table by scenario, for the scenarios of this variant."""
        found = self.rows(table, **values)
        if not found:
            return []
        here = self.outcomes.numbers("scenario")[self.outcomes.having("variant", self.variant)]
        is_here = np.isin([row["scenario"] for row in found], here)
        return [row for row, is_kept in zip(found, is_here.tolist(), strict=True) if is_kept]

    @cached_property
    def outcomes(self) -> Outcomes:
        """Outcomes of the run, which must exist."""
        assert self.folder is not None
        return Outcomes.read(self.folder)

    def failures(self, scenarios: Sequence[int]) -> dict[int, str]:
        """Failures of scenarios of the run, in words, by number."""
        if self.folder is None or not scenarios:
            return {}
        places = np.searchsorted(self.outcomes.numbers("scenario"), sorted(scenarios))
        return {
            row["scenario"]: failure(row["failed_links"], row["failed_routers"], row["group"], row["family"])
            for row in self.outcomes.rows(places)
        }


def place_of(what: str, name: str, known: Sequence[str], *, option: str = "") -> int:
    """Place of a name. Raises: TableError that names the nearest one, or what there is where none is near."""
    try:
        return known.index(name)
    except ValueError:
        near = nearest_name(name, known)
        there = f"; expected one of {listed(known, most=NAMED)}" if known else f"; the model has no {what}"
        hint = f"; did you mean `{near}`?" if near else there
        head = f"{option}: " if option else ""
        raise TableError(f"{head}no {what} `{name}` in the model{hint}") from None


def _named(model: Model, down: Sequence[str]) -> dict[str, Any]:
    """Links and routers of the names of routers, links, groups and sites; one text is one name.

    Raises: TableError
    """
    names = names_of(down)
    if names is None:
        raise TableError(f"down is {shown(down)}; expected ids of routers and links: a list of texts, or one text")
    elements = FailureCandidates.of(model)
    links: set[str] = set()
    routers: set[str] = set()
    for name in names:
        group = elements.group(name)
        if name in elements.routers:
            routers.add(name)
        elif name in elements.links:
            links.add(name)
        elif group is not None:
            links.update(elements.links[link] for link in elements.groups[group].links)
            routers.update(elements.routers[router] for router in elements.groups[group].routers)
        else:
            known = [*elements.routers, *elements.links, *(each.name for each in elements.groups)]
            place_of("router, link or group", name, known)
    return {"links": sorted(links), "routers": sorted(routers)}
