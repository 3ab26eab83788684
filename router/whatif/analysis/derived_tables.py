"""The last part of every run: tables that are answered from those of its scenarios, and its model."""

from __future__ import annotations

from pathlib import Path

from router.whatif.analysis.credit_plan import credit_table
from router.whatif.analysis.scenario_outcomes import Outcomes
from router.whatif.analysis.spof import spof_table
from router.whatif.analysis.suggest import placement_rows
from router.whatif.formats.model_folder import write_model
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.run_folder import MODEL, is_split
from router.whatif.pipeline.table_files import from_rows, write_table


def write_answers(folder: Path, model: Model) -> None:
    """Add to a run the tables `router_spof`, `credit_plan` and `placement`, and the model.

    With them every command can ask the run, whether it has a report or not.

    Args:
        folder: of the run, with all tables of scenarios.
        model: that was run.
    Raises: TableError, OSError.
    """
    network = Network.of(model)
    kernel = Kernel(network, is_split=is_split(folder))
    # Where a link would help a mesh; others are not judged.
    placement = () if network.has_asymmetric_costs else placement_rows(model, network, kernel)
    for name, table in (
        ("router_spof", spof_table(Outcomes.read(folder), model, network, kernel)),
        ("credit_plan", credit_table(network, kernel, model)),
        ("placement", from_rows("placement", placement)),
    ):
        write_table(folder, table, name)
    write_model(model, folder / MODEL)
