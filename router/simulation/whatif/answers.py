"""The last part of a run: what is answered from its tables, and the report."""

from __future__ import annotations

from pathlib import Path

from router.simulation.whatif import report
from router.simulation.whatif.credit_plan import credit_table
from router.simulation.whatif.kernel import Kernel
from router.simulation.whatif.model import Model
from router.simulation.whatif.network import Network
from router.simulation.whatif.outcomes import Outcomes
from router.simulation.whatif.report.verdicts import Verdict
from router.simulation.whatif.run_folder import MODEL
from router.simulation.whatif.spof import spof_table
from router.simulation.whatif.store import write_model
from router.simulation.whatif.suggest import placement_table
from router.simulation.whatif.table_files import write_table


def write(folder: Path, model: Model) -> list[Verdict]:
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
