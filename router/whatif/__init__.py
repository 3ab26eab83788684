"""What-if: what would happen to a mesh if routers or links failed, traffic grew or subscribers moved: the offline half.

A model (`model`) is read by `formats`, put into arrays for the `kernel`, and played through `scenarios` by the
`pipeline`, which writes tables; `analysis` answers from these, `report` shows the answers. `telemetry` watches a live
mesh, `forecasting` tells of its history when links will be full, `convergence` runs the mesh's twin.
`tests/test_layering.py` has who may import whom.

`library` is for programs and notebooks: its names can be imported from here. They are looked up when they are asked
for, since pieces of what-if are imported by who has no matplotlib, and by workers who need none of it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from router.whatif.library import (
        Forecast,
        LinkEdge,
        Model,
        ModelError,
        NetworkError,
        Options,
        PlanError,
        Request,
        Run,
        RunError,
        RunExecutionError,
        SettingsError,
        TableError,
        forecast,
        grown,
        import_model,
        open_forecast,
        open_run,
        play,
        read_model,
        with_costs,
        with_demands,
        with_groups,
        with_links,
        without,
        write_model,
    )

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"{__name__}.library"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
