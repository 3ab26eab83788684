"""Who may import whom: the rings of docs/explanation/architecture.md, read from the sources with `ast`.

Also the sizes that the house has set for modules and functions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

import mesh_config
import router

ROOTS = {package.__name__: Path(package.__file__).parent for package in (router, mesh_config)}

MODULE_LINES = 600
FUNCTION_LINES = 60


@attrs.frozen
class Ring:
    """What the modules of one folder may import; everything of the standard library not in `forbidden` is free."""

    folder: str
    ours: tuple[str, ...] = ()
    """Own packages and modules, with all below them; one's own folder is always allowed."""
    others: tuple[str, ...] = ()
    """Distributions' packages."""
    forbidden: tuple[str, ...] = ()
    """Modules of the standard library that this ring must not use."""


# No clock, file, log, socket or chance in ring 0: `now` and `rng` are arguments.
IMPURE = (
    "asyncio", "datetime", "http", "io", "logging", "multiprocessing", "os", "pathlib", "queue", "secrets",
    "select", "selectors", "shutil", "signal", "socket", "socketserver", "ssl", "subprocess", "sys", "tempfile",
    "threading", "time", "uuid",
)  # fmt: skip

# The longest folder that fits a module decides.
RINGS = (
    Ring("router.core", ours=("mesh_config.models",), others=("attrs",), forbidden=IMPURE),
    Ring(
        "router.core.linkstate.spf",
        ours=("router.core", "mesh_config.models"),
        others=("attrs", "networkx"),
        forbidden=IMPURE,
    ),
    # The part of the hot path that Cython compiles too.
    Ring(
        "router.core.forwarding",
        ours=("router.core", "mesh_config.models"),
        others=("attrs", "cython"),
        forbidden=IMPURE,
    ),
    Ring("router.binding", others=("cffi", "cproton", "cproton_ffi", "proton")),
    Ring(
        "router.dataplane",
        ours=(
            "router.core.forwarding", "router.core.terms", "router.core.errors", "router.binding",
            # Reading an address is needed for each message of an anonymous sender; the settings are plain data.
            "router.core.addressing.address", "mesh_config.models",
        ),
        others=("attrs", "cython"),
    ),
    Ring(
        "router.engine",
        ours=(
            "router.core", "router.dataplane.data_plane", "router.dataplane.links", "router.dataplane.delivery_states",
            "router.binding", "router.guard", "mesh_config.models", "router.logs",
        ),
        others=("attrs", "cython", "structlog"),
    ),
    # Bytes in, a verdict out: it would guard another program's engine as well.
    Ring("router.guard", others=("cython",), forbidden=IMPURE),
    Ring(
        "router.net",
        ours=("router.core", "router.engine.connection", "mesh_config.models", "router.logs"),
        others=("attrs", "cython", "hypercorn", "structlog", "trio"),
    ),
    Ring(
        "router.management",
        ours=("router.core", "router.engine.codec", "mesh_config.models", "router.logs"),
        others=("attrs", "cattrs", "structlog"),
    ),
    Ring(
        "router.simulation",
        ours=("router.core", "mesh_config"),
        others=("attrs", "cattrs", "cython", "networkx", "numpy", "pyarrow"),
    ),
    Ring(
        "router.simulation.whatif.spark",
        ours=("router.core", "router.simulation", "mesh_config"),
        others=("attrs", "networkx", "numpy", "pandas", "py4j", "pyarrow", "pyspark"),
    ),
    Ring(
        "router.simulation.whatif.spark_tasks",
        ours=("router.simulation.whatif.spark",),
        others=("pyarrow", "pyspark"),
    ),
    Ring(
        "router.simulation.whatif.stream",
        ours=("router.core", "router.simulation", "mesh_config"),
        others=("attrs", "networkx", "numpy", "pandas", "pyarrow", "pyspark"),
    ),
    Ring(
        "router.simulation.whatif.report",
        ours=("router.core", "router.simulation", "mesh_config"),
        others=("attrs", "matplotlib", "networkx", "numpy", "pyarrow"),
    ),
    # Its hot modules are compiled too.
    Ring(
        "router.bench",
        ours=("router.core.errors", "router.core.terms", "router.binding", "router.child_processes", "mesh_config"),
        others=("attrs", "cython"),
    ),
    Ring(
        "router.bench.picture",
        ours=("router.bench",),
        others=("matplotlib",),
    ),
    Ring(
        "router.cli",
        ours=(
            "router.daemon", "router.core", "router.bench", "router.management", "router.simulation",
            "router.child_processes", "router.logs", "mesh_config",
        ),
        others=("attrs", "click", "cproton", "oslo_config", "oslo_messaging", "proton", "rich", "structlog", "trio"),
    ),
    # The wiring.
    Ring("router.daemon", ours=("router", "mesh_config"), others=("attrs", "cattrs", "structlog", "trio")),
    Ring("router.runtime", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.fib_resync", ours=("router.core",)),
    Ring("router.link_teardown", ours=("router.dataplane.links", "router.engine.connection"), others=("attrs",)),
    Ring("router.memory_account", ours=("router", "mesh_config")),
    Ring("router.batches", ours=("router", "mesh_config"), others=("cython",)),
    Ring("router.peer_events", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.views", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.logs", ours=("router.core.escapes",), others=("structlog",)),
    Ring("router.__main__", ours=("router.cli",)),
    Ring("router", ours=()),
    Ring("mesh_config", others=("attrs", "cattrs", "networkx", "yaml")),
)  # fmt: skip

ANYWHERE = ("router", "router.SPEED", "router.__version__", "router.speed", "router.speed.SPEED", "typing_extensions")


def modules() -> Iterator[tuple[str, Path]]:
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join((package, *parts))
            yield name.removesuffix(".__init__"), path


MODULES = dict(modules())


def imports(tree: ast.Module, name: str, *, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every module that is imported, wherever in the file, as (dotted name, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                here = name.split(".")
                anchor = here[: len(here) - node.level + is_package]
                base = ".".join((*anchor, base) if base else anchor)
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def below(name: str, folder: str) -> bool:
    return name == folder or name.startswith(folder + ".")


def ring_of(module: str) -> Ring:
    return max((ring for ring in RINGS if below(module, ring.folder)), key=lambda ring: len(ring.folder))


def may_import(ring: Ring, imported: str) -> bool:
    top = imported.partition(".")[0]
    if imported in ANYWHERE or top == "__future__":
        return True
    if top in ROOTS:
        if below(imported, ring.folder) and ring.folder != "router":
            return True
        return any(below(imported, own) for own in ring.ours)
    if top in sys.stdlib_module_names:
        return not any(below(imported, bad) for bad in ring.forbidden)
    return any(below(imported, other) for other in (*ring.others, *(("attr",) if "attrs" in ring.others else ())))


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_what_its_ring_may(module: str) -> None:
    path = MODULES[module]
    ring = ring_of(module)
    wrong = [
        f"{path}:{line}: {module} ({ring.folder}) imports {imported}"
        for imported, line in imports(
            ast.parse(path.read_text(encoding="utf-8")), module, is_package=path.name == "__init__.py"
        )
        if not may_import(ring, imported)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "imported", "allowed"),
    [
        ("router.core.controlplane", "mesh_config.models", True),
        ("router.core.controlplane", "mesh_config.loader", False),
        ("router.core.controlplane", "time", False),
        ("router.core.controlplane", "networkx", False),
        ("router.core.linkstate.spf", "networkx", True),
        ("router.core.linkstate.spf", "router.engine.codec", False),
        ("router.dataplane.message_relay", "router.binding.handles", True),
        ("router.dataplane.message_relay", "router.core.forwarding.fib", True),
        ("router.dataplane.message_relay", "router.core.linkstate.lsdb", False),
        ("router.dataplane.message_relay", "proton", False),
        ("router.engine.connection", "proton", False),
        ("router.engine.connection", "trio", False),
        ("router.net.pump", "trio", True),
        ("router.net.pump", "router.engine.connection", True),
        ("router.net.pump", "router.dataplane.message_relay", False),
        ("router.management.node", "router.engine.codec", True),
        ("router.management.node", "router.engine.connection", False),
        ("router.simulation.mesh", "pyspark.sql", False),
        ("router.simulation.whatif.spark", "pyspark.sql", True),
        ("router.engine.connection", "router.guard.frame_guard", True),
        ("router.guard.frame_guard", "router.core.terms", False),
        ("router.guard.frame_guard", "router.binding.handles", False),
        ("router.bench.endpoints", "router.binding.handles", True),
        ("router.bench.endpoints", "router.dataplane.message_relay", False),
        ("router.bench.suite", "trio", False),
        ("router.bench.report", "matplotlib", False),
        ("router.bench.picture", "matplotlib.figure", True),
        ("router.daemon", "router.net.pump", True),
        ("router.cli.run", "router.daemon", True),
        ("router.cli.run", "router.net.pump", False),
        ("mesh_config.check", "networkx", True),
        ("mesh_config.check", "router.core.terms", False),
    ],
)
def test_the_table_says_what_the_design_says(module: str, imported: str, allowed: bool) -> None:
    assert may_import(ring_of(module), imported) is allowed


@pytest.mark.parametrize("module", MODULES)
def test_modules_and_functions_stay_small(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    assert source.count("\n") <= MODULE_LINES, f"{module} has more than {MODULE_LINES} lines: split it"
    long = [
        f"{MODULES[module]}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    ]
    assert not long, "\n".join(long)
