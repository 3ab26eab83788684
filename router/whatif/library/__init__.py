"""The library for programs and notebooks: make a model, change it, play it, look at what came of it.

Import these names from `router.whatif`. Errors are those of the parts that raise them: SettingsError for files,
ModelError for models, PlanError for what is asked, RunError for the run, TableError for tables, NetworkError for what
the kernel can't hold, all of them with what is wrong and what was expected.
"""

from mesh_config.findings import SettingsError
from router.whatif.formats.importer import import_model
from router.whatif.formats.model_folder import read_model, write_model
from router.whatif.kernel.network_arrays import NetworkError
from router.whatif.library.forecasts import Forecast, forecast, open_forecast
from router.whatif.library.run_results import Run, open_run, play
from router.whatif.model.elements import LinkEdge
from router.whatif.model.mesh_model import (
    Model,
    ModelError,
    grown,
    with_costs,
    with_demands,
    with_groups,
    with_links,
    without,
)
from router.whatif.pipeline.run import Options
from router.whatif.pipeline.run_staging import RunError, RunExecutionError
from router.whatif.pipeline.table_layouts import TableError
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import PlanError

__all__ = [
    "Forecast",
    "LinkEdge",
    "Model",
    "ModelError",
    "NetworkError",
    "Options",
    "PlanError",
    "Request",
    "Run",
    "RunError",
    "RunExecutionError",
    "SettingsError",
    "TableError",
    "forecast",
    "grown",
    "import_model",
    "open_forecast",
    "open_run",
    "play",
    "read_model",
    "with_costs",
    "with_demands",
    "with_groups",
    "with_links",
    "without",
    "write_model",
]
