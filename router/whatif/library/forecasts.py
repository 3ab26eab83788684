"""Forecasts as objects: made of a history, their tables as others know them."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from router.whatif.formats.model_folder import read_model
from router.whatif.library.run_results import Run, open_run
from router.whatif.library.sql_views import make_views, whole_frame
from router.whatif.library.table_folder import TableFolder
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.pipeline.run import Options
from router.whatif.pipeline.table_files import address_for_spark
from router.whatif.pipeline.table_layouts import LINK_FORECAST, TableError
from router.whatif.wording import DEFAULT_FAMILIES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Forecast(TableFolder):
    """The folder of a forecast. `forecast` and `open_forecast` make these."""

    def __repr__(self) -> str:
        return f"<Forecast {str(self.folder)!r}>"

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables; the run among them is in `run`."""
        return tuple(name for name in super().tables if name != "run")

    def views(self, session: SparkSession, prefix: str = "") -> tuple[str, ...]:
        """Make the tables known to SQL of Spark, as temporary views of their names; those of `run` are made by itself.

        Args:
            session: of Spark here, or Connect; it has to see the folder under the same path.
            prefix: put before each name.
        Returns: names of the views.
        """
        frames = {name: session.read.parquet(address_for_spark(self.folder / name)) for name in self.tables}
        return make_views({name: whole_frame(frame, name, ()) for name, frame in frames.items()}, prefix)

    @property
    def run(self) -> Run:
        """The run in which each period of the history is a variant."""
        return open_run(self.folder / "run")

    @property
    def expected(self) -> Model:
        """The model with the demands that are expected at the horizon."""
        return read_model(self.folder / "expected")

    @property
    def high(self) -> Model:
        """The model with the demands at the upper end of the band there."""
        return read_model(self.folder / "high")


def open_forecast(folder: str | os.PathLike[str]) -> Forecast:
    """A forecast that is there.

    Raises: TableError when the folder is none.
    """
    found = Forecast(Path(folder))
    if LINK_FORECAST.name not in found.tables:
        expected = "a folder that `amqp-mesh whatif forecast` or `forecast` wrote"
        raise TableError(f"{folder} is no forecast; expected {expected}")
    return found


def forecast(
    history: str | os.PathLike[str],
    model: Model,
    out: str | os.PathLike[str],
    *,
    period: str = "week",
    level: str = "busy",
    horizon: int = 26,
    limit: float = 1.0,
    confidence: float = 0.9,
    families: str = DEFAULT_FAMILIES,
    options: Options | None = None,
) -> Forecast:
    """Tell when links will be full, from a history of counters, on Spark.

    Args:
        history: folder that `amqp-mesh whatif watch --addresses -o` writes.
        model: of the mesh, with capacities; its demands are not used.
        out: a new folder, or a forecast that is replaced.
        period: `week`, `day` or `hour`: what the trend counts in.
        level: what stands for a period: `busy`, `mean`, `p50`, `p95`, `p99` or `max`.
        horizon: periods to look ahead.
        limit: utilisation at which a link is full.
        confidence: so many periods, above 0 and below 1, will be within the band.
        families: of failures, as after `--fail`.
        options: address and settings of Spark; None: this thread's session, or one of this machine.
    Raises: RunError when there is too little of it; ModelError, PlanError, OSError; ValueError for another *period*,
        *level*, *horizon*, *limit* or *confidence*.
    """
    sessions = import_whole("router.whatif.pipeline.spark_session")
    making = import_whole("router.whatif.forecasting.capacity_forecast")
    wanted = making.choose(
        period=period, level=level, horizon=horizon, limit=limit, confidence=confidence, families=families
    )
    address = (options or Options()).address
    making.check(Path(history), model, Path(out), families=families)
    with (
        tempfile.TemporaryDirectory(prefix="amqp-mesh-") as folder,
        sessions.session(address, Path(folder) / sessions.LOG) as session,
    ):
        making.forecast(session, Path(history), model, Path(out), wanted, address=address)
    return Forecast(Path(out))
