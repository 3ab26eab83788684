"""Simulation parameters of a twin: network, CPU, and cost per operation.

The costs were measured on real router processes (`python -m tests.measure.twin cpu_costs`);
docs/explanation/measurements.md has what came out, on which machine, and how far the twin's times are from those of
real processes.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.simulation.cpu_model import CpuCosts
from router.simulation.network import NetworkConditions

CPU_COSTS: Final = CpuCosts(
    turn_s=185e-6,
    cold_s=220e-6,
    received_s=61e-6,
    sent_s=57e-6,
    connected_s=3.9e-3,
    spf_s=200e-6,
    path_s=4.7e-6,
    installed_s=12e-6,
)
"""A router process of CPython 3.11, compiled, on a core of its own: measured."""


@attrs.frozen(kw_only=True)
class SimulationParameters:
    """Simulation parameters of a twin: network, processors, cost of each operation."""

    network: NetworkConditions = NetworkConditions(delay_s=0.0005, jitter_s=0.0005)
    """Network conditions of links without a delay of their own."""
    cpu_costs: CpuCosts | None = CPU_COSTS
    """Costs of computing; None: it takes no time, as on machines of infinite speed."""
    detection_s: float = 0.005
    """Time from the end of a process until its peers notice, seconds: the system clears the process's memory first."""
    detection_jitter_s: float = 0.001


LOOPBACK: Final = SimulationParameters(
    network=NetworkConditions(delay_s=10e-6, jitter_s=10e-6),
    cpu_costs=attrs.evolve(CPU_COSTS, cores=2),
    detection_s=0.0054,
    detection_jitter_s=0.0005,
)
"""All routers on one machine with two cores: measured."""
