"""A run as an object: made or opened, its tables as others know them, its charts and explanations."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from mesh_config.findings import nearest
from router.whatif.analysis import explain as explaining
from router.whatif.analysis.derived_tables import write_answers
from router.whatif.analysis.explain import BaseAndScenario, Explanation
from router.whatif.analysis.explain.base_and_scenario import SHOWN
from router.whatif.analysis.link_demands import link_demands, lost_demands
from router.whatif.library.notebook_display import Drawing, NotebookExplanation, html_table
from router.whatif.library.sql_views import make_views, run_frames, whole_frame
from router.whatif.library.table_folder import TableFolder
from router.whatif.library.utilisation_charts import heat, utilisations
from router.whatif.library.worst_utilisation_chart import failures
from router.whatif.model.mesh_model import Model
from router.whatif.model.value_kinds import names_of
from router.whatif.pipeline import run as runs
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.pipeline.run import Options
from router.whatif.pipeline.run_folder import is_run, model_of, read_plan
from router.whatif.pipeline.run_storage import is_elsewhere
from router.whatif.pipeline.table_files import address_for_spark
from router.whatif.pipeline.table_layouts import LAYOUTS, TableError, layout_of, said_of_missing
from router.whatif.report.explanation_picture import mesh_svg
from router.whatif.report.finish_run import complete_run
from router.whatif.report.pictures import pictures
from router.whatif.report.run_facts import facts_of
from router.whatif.report.themed_matplotlib_svg import standing_alone
from router.whatif.report.verdicts import Verdict, verdicts
from router.whatif.scenarios.run_request import Request, of_fields
from router.whatif.scenarios.scenario_plan import PlanError
from router.whatif.wording import BASE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as SparkFrame
    from pyspark.sql import SparkSession


class Run(TableFolder):
    """The folder of a run. `open_run` and `play` make these.

    Nothing is kept in memory: each call reads what it needs of the folder. Of a run that lies elsewhere, as
    `hdfs://name/run`, that is a copy, which goes with this object; Spark reads the original.
    """

    def __init__(self, folder: Path, *, place: str = "", missing: Sequence[str] = ()) -> None:
        """The run in a folder of this machine, or a copy of one.

        Args:
            folder: of this machine.
            place: address of the run of which it is a copy; empty: it is none.
            missing: tables that haven't been copied.
        """
        super().__init__(folder)
        self.place = place or str(folder)
        """Place of the run."""
        self._is_copy, self._missing = bool(place), tuple(missing)

    def __repr__(self) -> str:
        return f"<Run {self.place!r}>"

    def _repr_html_(self) -> str:
        rows = [(each.label, each.value, each.note) for each in self.verdicts()]
        return html_table(f"Run {self.place}", ("question", "answer", "more"), rows)

    @property
    def model(self) -> Model:
        """The model that was run."""
        return model_of(self.folder)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that the run has; what their columns mean is in the reference of tables."""
        return tuple(name for name in LAYOUTS if (self.folder / name).is_dir() or name in self._missing)

    def arrow(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table, in the order of its key. See `TableFolder.arrow`.

        Raises: TableError for a table or column that isn't there, or that a copy lacks.
        """
        if table in self._missing:
            raise TableError(f"table {table} of {self.place} is too large for a copy; expected `spark` or `views`")
        return super().arrow(table, columns)

    def spark(self, table: str, session: SparkSession) -> SparkFrame:
        """A table as a DataFrame of Spark, read by its executors, in no order, with the columns of `arrow`.

        Args:
            table: one of `tables`.
            session: of Spark here, or Connect; it has to see the folder under the same path.
        Raises: TableError for a table that isn't there.
        """
        layout = layout_of(table)
        if layout.name not in self.tables:
            raise TableError(f"{self.place} has no table {table!r}; {said_of_missing(table, self.tables)}")
        frame = session.read.parquet(self._address(layout.name))
        return whole_frame(frame, layout.name, read_plan(self.folder).sections)

    def _address(self, name: str) -> str:
        """Name a part of the run as Spark takes it."""
        return f"{self.place}/{name}" if self._is_copy else address_for_spark(self.folder / name)

    def views(self, session: SparkSession, prefix: str = "") -> tuple[str, ...]:
        """Make the tables and the parts of the model known to SQL of Spark, as temporary views of their names.

        Tables that have rows by scenario have the columns `variant` and `family`, too. Parts of the model are
        `routers`, `links`, `addresses`, `subscribers`, `groups`, `counters` and `demands`.

        Args:
            session: of Spark here, or Connect; it has to see the folder under the same path.
            prefix: put before each name, for several runs in one session.
        Returns: names of the views.
        """
        return make_views(run_frames(self.folder, self.tables, session, self._address), prefix)

    def verdicts(self) -> list[Verdict]:
        """Findings in short: the cards of the report."""
        return verdicts(facts_of(self.folder, self.model))

    def charts(self) -> dict[str, Drawing]:
        """Charts by name: those of the report, and of utilisation by failure.

        `failures` has the highest utilisation of any link, `utilisations` in how many failures it is so high (a
        survival curve), `heat` links by failures, of a run with loads by scenario. Of the report there are
        `mesh`, and where there is something to be seen: `loads` (each link as it is and at its worst), `losses` (how
        many failures lose more than so much: a survival curve), `stretches`, `growth`.
        """
        facts = facts_of(self.folder, self.model)
        drawn = [
            *pictures(facts),
            *filter(None, [failures(facts, self.folder), utilisations(facts), heat(facts, self.folder)]),
        ]
        return {
            each.name: Drawing(title=each.title, caption=each.caption, svg=standing_alone(each.svg)) for each in drawn
        }

    def explain(
        self,
        *,
        scenario: int | None = None,
        down: Sequence[str] = (),
        variant: str = BASE,
        link: str | None = None,
        router: str | None = None,
        pair: tuple[str, str] | None = None,
        address: str | None = None,
        limit: int = SHOWN,
    ) -> NotebookExplanation:
        """Explain a scenario, or a link, a router, a pair of routers or an address as they are then.

        Args:
            scenario: its number in the table `scenario`.
            down: ids of links and routers that are down, instead of a scenario; one alone may be given as it is.
            variant: of the mesh, for what is down.
            link: its id.
            router: its id.
            pair: ids of two routers, from the one to the other.
            address: its text.
            limit: rows of each of its tables, at most.
        Raises: TableError for what is not there; ValueError when more than one thing is asked about.
        """
        asked = {"link": link, "router": router, "pair": pair, "address": address}
        given = [name for name, value in asked.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} are given; expected only one of {', '.join(asked)}")
        _refuse_no_pair(pair)
        subject = BaseAndScenario.of_run(self.folder, scenario=scenario, variant=variant, down=down)
        subject.shown = limit
        found = explaining.explain(subject, link=link, router=router, pair=pair, address=address)
        return NotebookExplanation(explanation=found, drawing=_drawn(found, subject.model))

    def link_demands(
        self,
        *,
        scenario: int | None = None,
        down: Sequence[str] = (),
        variant: str = BASE,
        link: str | None = None,
    ) -> pa.Table:
        """List the demands by the directions of links that carry them; those of a direction add up to its load.

        The columns are `link`, `src`, `dst`, `demand_src`, `demand_dst`, `address`, `msgs_per_s`. Of a multicast one
        copy is on a link, so `demand_dst` is null.

        Args:
            scenario: its number in the table `scenario`; None: what is down.
            down: ids of links and routers that are down, instead of a scenario; empty: none.
            variant: of the mesh, for what is down.
            link: id of the only link that is wanted.
        Raises: TableError for what is not there, and for a run with ECMP, where no link has the whole of a demand.
        """
        subject = BaseAndScenario.of_run(self.folder, scenario=scenario, variant=variant, down=down)
        return link_demands(subject.now, None if link is None else subject.link(link))

    def lost_demands(self, *, scenario: int | None = None, down: Sequence[str] = (), variant: str = BASE) -> pa.Table:
        """List the demands that reach nobody, each with its cause; they add up to `lost_msgs_per_s` of the scenario.

        The columns are `demand_src`, `demand_dst`, `address`, `msgs_per_s`, `cause`. Causes are `router down`,
        `no subscriber`, `no path` and `no credit`; see `link_demands` for the arguments.
        """
        subject = BaseAndScenario.of_run(self.folder, scenario=scenario, variant=variant, down=down)
        return lost_demands(subject.now)


def _refuse_no_pair(given: object) -> None:
    """Raises: ValueError for what are no two names, as one text."""
    if given is not None and (isinstance(given, str) or len(names_of(given) or ()) != 2):
        raise ValueError(f"pair is {given!r}; expected ids of two routers: (from, to)")


def _drawn(found: Explanation, model: Model) -> Drawing:
    return Drawing(title=found.title, caption=found.sentences[0] if found.sentences else "", svg=mesh_svg(found, model))


def open_run(folder: str | os.PathLike[str]) -> Run:
    """A run that is there. Of one elsewhere, such as `hdfs://name/run`, this thread's session makes a copy.

    Raises: TableError when the folder is none; RunError when it isn't to be reached.
    """
    if is_elsewhere(folder):
        return _copied(str(folder).rstrip("/"))
    path = Path(folder)
    if not is_run(path):
        raise TableError(f"{path} is no run; expected a folder that `amqp-mesh whatif run` or `play` wrote")
    return Run(path)


def _copied(place: str) -> Run:
    """A run elsewhere."""
    copying = import_whole("router.whatif.pipeline.hadoop_run_staging")
    folder = Path(tempfile.mkdtemp(prefix="amqp-mesh-"))
    try:
        missing = copying.copy_run(place, folder / "run")
        if not is_run(folder / "run"):
            raise TableError(f"{place} is no run; expected a folder that `amqp-mesh whatif run` or `play` wrote")
        found = Run(folder / "run", place=place, missing=missing)
    except BaseException:
        shutil.rmtree(folder)
        raise
    weakref.finalize(found, shutil.rmtree, folder, ignore_errors=True)
    return found


def play(
    model: Model,
    out: str | os.PathLike[str],
    request: Request | None = None,
    options: Options | None = None,
    *,
    has_report: bool = False,
    **asked: Any,
) -> Run:
    """Play failures and changes through a model.

    Args:
        model: that has been checked, as all are that functions of the library return.
        out: a new folder, or a run that is replaced; Spark writes it to an address such as `hdfs://name/run`.
        request: what is played; None: what *asked* says.
        options: where it is played. The usual ones take this thread's session of Spark if there is one, or start Spark
            when there is much to do, and else play it here; `Options(engine="local")` plays it here in any case.
        has_report: whether report.html and summary.json are written too.
        asked: fields of Request, instead of one: `play(model, out, families="links:2", growth="2")`.
    Raises: PlanError, ModelError, RunError, NetworkError for what can't be; TypeError for a field that Request hasn't;
        OSError.
    """
    if request is not None and asked:
        raise TypeError(f"request is given, and {', '.join(asked)} too; expected one or the other")
    _refuse_unknown_fields(asked)
    wanted = Request(**asked) if request is None else request

    def finish(folder: Path) -> None:
        if has_report:
            complete_run(folder, model)
        else:
            write_answers(folder, model)

    try:
        runs.run(model, wanted, out, options, finish=finish)
    except PlanError as error:
        raise of_fields(error) from None
    return open_run(out)


def _refuse_unknown_fields(asked: Iterable[str]) -> None:
    """Raises: TypeError for a name that is no field of Request, with the one that may be meant."""
    fields = [field.name for field in attrs.fields(Request)]
    of_options = [field.name for field in attrs.fields(Options)]
    for name in asked:
        if name in of_options:
            raise TypeError(f"play() has no argument `{name}`; expected options=Options({name}=...)")
        if name not in fields:
            near = nearest(name, [*fields, *of_options, "request", "options", "has_report"])
            meant = f"; did you mean `{near}`?" if near else f"; expected one of {', '.join(fields)}"
            raise TypeError(f"play() has no argument `{name}`{meant}")
