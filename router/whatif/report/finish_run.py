"""The last part of a run: what is answered from its tables, and the report."""

from __future__ import annotations

from pathlib import Path

from router.whatif import report
from router.whatif.analysis.credit_plan import credit_table
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.analysis.spof import spof_table
from router.whatif.analysis.suggest import placement_table
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_folder import MODEL
from router.whatif.pipeline.table_files import write_table
from router.whatif.report.verdicts import Verdict


def complete_run(folder: Path, model: Model) -> list[Verdict]:
    """Add to a run the tables `router_spof`, `credit_plan` and `placement`, the model, the report and its summary.

    Args:
        folder: of the run, with all tables of scenarios.
        model: that was run.
    Returns: what was found, in short.
    Raises: TableError, OSError.
    """
    network = Network.of(model)
    kernel = Kernel(network)
    for name, table in (
        ("router_spof", spof_table(Outcomes.read(folder), model, network, kernel)),
        ("credit_plan", credit_table(network, kernel, model)),
        ("placement", placement_table(model, network, kernel)),
    ):
        write_table(folder, table, name)
    write_model(model, folder / MODEL)
    return report.write(folder, model)
