"""Who may import whom: the rings of docs/explanation/architecture.md, read from the sources with `ast`.

Also the sizes that the house has set for modules and functions.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import attrs
import pytest

import mesh_config
import router
from tests.helpers.syntax import nodes_of, syntax_of

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


@attrs.frozen
class Step:
    """What the modules of one package of what-if may import."""

    package: str
    before: tuple[str, ...] = ()
    """Packages of what-if."""
    others: tuple[str, ...] = ()
    """Distributions' packages."""
    ours: tuple[str, ...] = ("mesh_config",)
    """Own packages outside what-if."""

    @property
    def folder(self) -> str:
        return f"router.whatif.{self.package}"

    @property
    def packages(self) -> tuple[str, ...]:
        return tuple(f"router.whatif.{name}" for name in self.before)


# In order: each imports only what stands before it.
WHATIF = (
    Step("wording", ours=()),
    Step("model", others=("attrs", "numpy")),
    Step(
        "formats",
        before=("wording", "model"),
        others=("attrs", "numpy", "pyarrow"),
        ours=("router.core.addressing.address", "router.core.addressing.treatment_table", "mesh_config"),
    ),
    Step("kernel", before=("model",), others=("attrs", "cython", "numpy", "pyarrow"), ours=("mesh_config.models",)),
    Step("scenarios", before=("wording", "model"), others=("attrs", "numpy")),
    Step(
        "pipeline",
        before=("wording", "model", "formats", "kernel", "scenarios"),
        others=("attrs", "numpy", "pyarrow"),
    ),
    Step(
        "analysis",
        before=("wording", "model", "formats", "kernel", "scenarios", "pipeline"),
        others=("attrs", "numpy", "pyarrow"),
    ),
    Step(
        "report",
        before=("wording", "model", "formats", "kernel", "scenarios", "pipeline", "analysis"),
        others=("attrs", "matplotlib", "numpy", "pyarrow"),
    ),
    Step(
        "telemetry",
        before=("model", "formats", "pipeline"),
        others=("attrs", "pyarrow"),
        ours=("router.core.addressing.address",),
    ),
    Step(
        "convergence",
        before=("model", "formats", "pipeline"),
        others=("attrs", "pyarrow"),
        ours=("router.core", "router.simulation", "mesh_config"),
    ),
    Step(
        "forecasting",
        before=("wording", "model", "formats", "kernel", "scenarios", "pipeline", "analysis"),
        others=("attrs", "pyarrow"),
    ),
    # For programs and notebooks; Spark only for what type checkers read.
    Step(
        "library",
        before=("wording", "model", "formats", "kernel", "scenarios", "pipeline", "analysis", "report", "forecasting"),
        others=("attrs", "matplotlib", "numpy", "pyarrow", "pyspark"),
    ),
)  # fmt: skip

# The longest folder that fits a module decides.
RINGS = (
    Ring("router.core", ours=("mesh_config.models",), others=("attrs",), forbidden=IMPURE),
    # Addresses are compared with patterns of treatments and of policy by one automaton.
    Ring(
        "router.core.addressing",
        ours=("router.core", "mesh_config.models", "mesh_config.multi_pattern_matcher"),
        others=("attrs",),
        forbidden=IMPURE,
    ),
    # The settings file's own rules are applied where they are parsed.
    Ring(
        "router.core.policy",
        ours=("router.core", "mesh_config.models", "mesh_config.access_rules", "mesh_config.user_names"),
        others=("attrs",),
        forbidden=IMPURE,
    ),
    # The part of the hot path that Cython compiles too.
    Ring(
        "router.core.forwarding",
        ours=("router.core", "mesh_config.models"),
        others=("attrs", "cython"),
        forbidden=IMPURE,
    ),
    Ring(
        "router.core.linkstate.spf",
        ours=("router.core", "mesh_config.models"),
        others=("attrs", "networkx"),
        forbidden=IMPURE,
    ),
    Ring("router.binding", others=("_cffi_backend", "cffi", "cproton", "cproton_ffi", "proton")),
    Ring(
        "router.dataplane",
        ours=(
            "router.core.forwarding", "router.core.ids_and_conditions", "router.core.errors", "router.binding",
            # Reading an address is needed for each message of an anonymous sender; the settings are plain data.
            "router.core.addressing.address", "mesh_config.models",
        ),
        others=("attrs", "cython"),
    ),
    Ring(
        "router.engine",
        ours=(
            "router.core", "router.dataplane.data_plane", "router.dataplane.links",
            "router.dataplane.connection_port", "router.dataplane.transfer_stages",
            "router.binding", "router.guard", "mesh_config.models", "mesh_config.user_names", "router.logs",
        ),
        others=("attrs", "cython", "structlog"),
    ),
    # Bytes in, a verdict out: it would guard another program's engine as well.
    Ring("router.guard", others=("cython",), forbidden=IMPURE),
    # Machines and files; who waits is in `router.net`.
    Ring(
        "router.security",
        ours=("router.core.errors", "router.core.terminal_escaping", "mesh_config.models", "mesh_config.user_names"),
        others=("attrs",),
    ),
    Ring(
        "router.net",
        ours=(
            "router.core", "router.engine.connection", "router.engine.peer_identity", "router.engine.tls_channel",
            "router.security", "mesh_config.usable_hosts", "mesh_config.models", "router.logs",
        ),
        others=("attrs", "cython", "h11", "structlog", "trio"),
    ),
    Ring(
        "router.management",
        ours=("router.core", "router.engine.message_codec", "mesh_config.models", "router.logs"),
        others=("attrs", "cattrs", "structlog"),
    ),
    # What it answers by HTTP, and nothing else: the extra `http` brings these.
    Ring("router.management.http_app", ours=("router.management", "mesh_config.models"), others=("starlette",)),
    Ring("router.management.console", ours=("router.management.throttled_page",), others=("starlette",)),
    Ring("router.management.sign_in", others=("starlette",)),
    Ring("router.management.metrics", others=("attrs", "prometheus_client")),
    Ring("router.management.throttled_page", others=("trio",)),
    Ring("router.simulation", ours=("router.core", "mesh_config.models"), others=("attrs", "networkx")),
    Ring(
        "router.testing",
        ours=("router.core", "router.simulation.network", "mesh_config.findings"),
        others=("attrs", "networkx"),
    ),
    # The names of the library, for what type checkers read; looked up when they are asked for.
    Ring("router.whatif", ours=("router.whatif.library",)),
    *(Ring(step.folder, (*step.ours, *step.packages), step.others) for step in WHATIF),
    # Nothing else knows lxml.
    Ring("router.whatif.formats.xml_with_lines", ours=("router.whatif.formats.input_file",), others=("lxml",)),
    # Nothing else knows Jinja2.
    Ring(
        "router.whatif.report.html_page",
        ours=("router.whatif.report", "router.whatif.analysis", "router.whatif.wording"),
        others=("jinja2",),
    ),
    # Nothing else knows Spark.
    Ring(
        "router.whatif.pipeline.spark_session",
        ours=("router.whatif.pipeline", "mesh_config.usable_hosts"),
        others=("py4j", "pyspark"),
    ),
    Ring(
        "router.whatif.pipeline.spark_engine",
        ours=("router.whatif.pipeline", "router.whatif.scenarios"),
        others=("attrs", "pyarrow", "pyspark"),
    ),
    Ring("router.whatif.pipeline.hadoop_storage", ours=("router.whatif.pipeline",), others=("py4j", "pyspark")),
    Ring("router.whatif.pipeline.spark_ranges", ours=("router.whatif.pipeline",), others=("pyspark",)),
    Ring(
        "router.whatif.pipeline.spark_tables",
        ours=(
            "router.whatif.pipeline", "router.whatif.scenarios", "router.whatif.kernel.network_arrays",
            "router.whatif.wording",
        ),
        others=("pyarrow", "pyspark"),
    ),
    Ring(
        "router.whatif.pipeline.spark_summaries",
        ours=("router.whatif.pipeline", "router.whatif.scenarios", "router.whatif.wording"),
        others=("pyarrow", "pyspark"),
    ),
    Ring(
        "router.whatif.pipeline.spark_parallel_map",
        ours=("router.whatif.pipeline.spark_session",),
        others=("pyarrow", "pyspark"),
    ),
    *(
        Ring(
            f"router.whatif.forecasting.{module}",
            ours=(
                "router.whatif.forecasting", "router.whatif.model", "router.whatif.formats", "router.whatif.pipeline",
                "router.whatif.scenarios", "router.whatif.analysis", "router.whatif.wording",
            ),
            others=("attrs", "pyarrow", "pyspark"),
        )
        for module in ("demand_history", "link_trends", "capacity_forecast")
    ),
    Ring(
        "router.whatif.telemetry.counter_stream",
        ours=("router.whatif.telemetry", "router.whatif.model", "router.whatif.formats", "router.whatif.pipeline"),
        others=("attrs", "pyarrow", "pyspark"),
    ),
    # Its hot modules are compiled too.
    Ring(
        "router.bench",
        ours=(
            "router.core.errors", "router.core.ids_and_conditions", "router.binding", "router.child_processes",
            "mesh_config",
        ),
        others=("attrs", "cython"),
    ),
    Ring(
        "router.bench.picture",
        ours=("router.bench",),
        others=("matplotlib",),
    ),
    # Clients in processes of their own.
    Ring("router.bench.oslo_peer", others=("oslo_config", "oslo_messaging")),
    Ring(
        "router.cli",
        ours=(
            "router.daemon", "router.core", "router.bench", "router.management", "router.whatif",
            "router.address_space_headroom", "router.background_call", "router.child_processes", "router.drain_state",
            "router.findings_log", "router.http_extra", "router.logs", "router.security", "mesh_config",
        ),
        others=("attrs", "click", "cproton", "oslo_config", "oslo_messaging", "proton", "rich", "structlog", "trio"),
    ),
    # The wiring.
    Ring("router.daemon", ours=("router", "mesh_config"), others=("attrs", "cattrs", "structlog", "trio")),
    Ring("router.connection_server", ours=("router", "mesh_config.models"), others=("trio",)),
    Ring("router.clock_and_gc", others=("trio",)),
    Ring("router.graceful_stop", ours=("router.runtime", "router.core", "router.drain_state"), others=("trio",)),
    Ring("router.changeable_daemon", ours=("router.net", "router.security.credential_store", "mesh_config")),
    Ring("router.background_call"),
    Ring("router.draining", ours=("router", "mesh_config.models"), others=("trio",)),
    Ring("router.drain_state"),
    Ring("router.runtime", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.fib_resync", ours=("router.core",)),
    Ring("router.findings_log", ours=("mesh_config.findings",)),
    Ring("router.denial_log", ours=("router.core",), others=("attrs",)),
    Ring(
        "router.mesh_presence",
        ours=("router.core.ids_and_conditions", "router.core.linkstate.spf", "mesh_config"),
        others=("attrs",),
        forbidden=IMPURE,
    ),
    Ring("router.control_pacer", ours=("router.core", "router.control_message_queue"), others=("attrs",)),
    Ring("router.control_message_queue", others=("attrs",)),
    Ring(
        "router.ended_connection_reaper",
        ours=("router.dataplane.links", "router.engine.connection"),
        others=("attrs",),
    ),
    Ring("router.peer_memory_account", ours=("router", "mesh_config")),
    Ring("router.address_space_headroom", ours=("router.core", "mesh_config")),
    Ring("router.run_to_completion", ours=("router", "mesh_config"), others=("cython",)),
    Ring(
        "router.neighbor_admission",
        ours=(
            "router.core", "router.engine.peer_identity", "router.engine.peer_open", "mesh_config.models",
        ),
        others=("attrs",),
    ),
    Ring("router.peer_event_handler", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.flight_recorder", ours=("router.core", "mesh_config.models")),
    Ring("router.http_service", ours=("router", "mesh_config")),
    Ring("router.http_extra", ours=("router.core.errors",)),
    Ring("router.http_server_manager", ours=("router", "mesh_config"), others=("trio",)),
    Ring("router.closed_connection_traffic", ours=("router.core", "router.dataplane", "router.net"), others=("attrs",)),
    Ring("router.views.mesh_status_poller", ours=("router",), others=("attrs", "trio")),
    Ring("router.views", ours=("router", "mesh_config"), others=("attrs", "structlog")),
    Ring("router.logs", ours=("router.core.terminal_escaping",), others=("structlog",)),
    Ring("router.__main__", ours=("router.cli",)),
    Ring("router", ours=()),
    Ring("mesh_config", others=("attrs", "cattrs", "idna", "networkx", "yaml")),
)  # fmt: skip

ANYWHERE = ("router", "router.SPEED", "router.__version__", "router.speed", "router.speed.SPEED", "typing_extensions")


def modules() -> Iterator[tuple[str, Path]]:
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            name = ".".join((package, *parts))
            yield name.removesuffix(".__init__"), path


MODULES = dict(modules())


def imports(nodes: Iterable[ast.AST], name: str, *, is_package: bool) -> Iterator[tuple[str, int]]:
    """Every module that is imported, wherever in the file, as (dotted name, line)."""
    for node in nodes:
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


def test_a_module_imports_only_what_its_ring_may() -> None:
    wrong = []
    for module, path in MODULES.items():
        ring = ring_of(module)
        wrong += [
            f"{path}:{line}: {module} ({ring.folder}) imports {imported}"
            for imported, line in imports(nodes_of(path), module, is_package=path.name == "__init__.py")
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
        ("router.core.linkstate.spf", "router.engine.message_codec", False),
        ("router.dataplane.router_data_plane", "router.binding.proton_functions", True),
        ("router.dataplane.router_data_plane", "router.core.forwarding.fib", True),
        ("router.dataplane.router_data_plane", "router.core.linkstate.lsdb", False),
        ("router.dataplane.router_data_plane", "proton", False),
        ("router.engine.connection", "proton", False),
        ("router.engine.connection", "trio", False),
        ("router.net.pump", "trio", True),
        ("router.net.pump", "router.engine.connection", True),
        ("router.net.pump", "router.dataplane.router_data_plane", False),
        ("router.management.node", "router.engine.message_codec", True),
        ("router.management.node", "router.engine.connection", False),
        ("router.simulation.mesh", "pyspark.sql", False),
        ("router.simulation.mesh", "router.whatif.model.mesh_model", False),
        ("router.simulation.mesh", "router.testing.links", False),
        ("router.testing.credit_mesh_base", "router.simulation.network", True),
        ("router.testing.credit_mesh_base", "router.simulation.mesh", False),
        ("router.whatif.pipeline.spark_engine", "pyspark.sql", True),
        ("router.whatif.pipeline.run", "pyspark.sql", False),
        ("router.whatif.model.mesh_model", "router.whatif.kernel.mesh_kernel", False),
        ("router.whatif.kernel.mesh_kernel", "router.whatif.model.mesh_model", True),
        ("router.whatif.kernel.mesh_kernel", "router.whatif.pipeline.table_layouts", False),
        ("router.whatif.pipeline.run", "router.whatif.analysis.spof", False),
        ("router.whatif.analysis.spof", "matplotlib", False),
        ("router.whatif.formats.graphml", "lxml", False),
        ("router.whatif.report.html_parts", "jinja2", False),
        ("router.whatif.convergence.twin", "router.simulation.mesh", True),
        ("router.whatif.analysis.spof", "router.simulation.mesh", False),
        ("router.engine.connection", "router.guard.frame_guard", True),
        ("router.guard.frame_guard", "router.core.ids_and_conditions", False),
        ("router.guard.frame_guard", "router.binding.proton_functions", False),
        ("router.bench.load_endpoints", "router.binding.proton_functions", True),
        ("router.bench.load_endpoints", "router.dataplane.router_data_plane", False),
        ("router.bench.suite", "trio", False),
        ("router.bench.json_report", "matplotlib", False),
        ("router.bench.picture", "matplotlib.figure", True),
        ("router.connection_server", "router.net.pump", True),
        ("router.cli.run", "router.daemon", True),
        ("router.cli.run", "router.net.pump", False),
        ("mesh_config.check", "networkx", True),
        ("mesh_config.check", "router.core.ids_and_conditions", False),
    ],
)
def test_the_table_says_what_the_design_says(module: str, imported: str, allowed: bool) -> None:
    assert may_import(ring_of(module), imported) is allowed


def test_packages_of_what_if_import_only_those_before_them() -> None:
    names = [step.package for step in WHATIF]
    for place, step in enumerate(WHATIF):
        assert set(step.before) <= set(names[:place]), step.package
    found = {module.split(".")[2] for module in MODULES if module.startswith("router.whatif.")}
    assert found == set(names)


def test_tests_of_what_if_lie_in_folders_that_are_named_as_its_packages() -> None:
    packages = {step.package for step in WHATIF}
    folders = {path.parent.name for path in (Path(__file__).parent / "whatif").glob("*/test_*.py")}
    assert folders == packages - {"wording"}, "wording is a module: tests/whatif/test_wording.py"


def is_for_types_alone(node: ast.AST) -> bool:
    """Whether it is an `if TYPE_CHECKING`: what a type checker reads, and no program."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def test_no_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        body = [node for node in syntax_of(path).body if not is_for_types_alone(node)]
        tree = ast.Module(body=body, type_ignores=[])
        found = {name for name, _ in imports(ast.walk(tree), module, is_package=path.name == "__init__.py")}
        graph[module] = {name if name in MODULES else name.rpartition(".")[0] for name in found} & MODULES.keys()
    TopologicalSorter(graph).prepare()  # raises CycleError with the modules


def test_modules_and_functions_stay_small() -> None:
    long = [
        f"{module} has more than {MODULE_LINES} lines: split it"
        for module, path in MODULES.items()
        if path.read_bytes().count(b"\n") > MODULE_LINES
    ]
    long += [
        f"{path}:{node.lineno}: {node.name} has {node.end_lineno - node.lineno + 1} lines"
        for path in MODULES.values()
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= FUNCTION_LINES
    ]
    assert not long, "\n".join(long)


DATAPLANE = {
    node.name: node
    for name, path in MODULES.items()
    if below(name, "router.dataplane")
    for node in syntax_of(path).body
    if isinstance(node, ast.ClassDef)
}


def bases_of(node: ast.ClassDef) -> list[str]:
    """The names of what a class is derived from."""
    # A test of declarations takes the attribute for one that only compiled classes have.
    return [ast.unparse(base) for base in dict(ast.iter_fields(node))["bases"]]


def base_names(name: str) -> list[str]:
    """The names of what a class of the data plane is derived from."""
    return bases_of(DATAPLANE[name])


def made_by(name: str) -> set[str]:
    """Classes of the data plane that objects of a class make when they are made."""
    return {
        node.func.id
        for function in DATAPLANE[name].body
        if isinstance(function, ast.FunctionDef) and function.name == "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in DATAPLANE
    }


def parts() -> set[str]:
    """The classes of which the data plane has one object each, with those that they are derived from; and `Port`."""
    found, new = {"Port"}, {"RouterDataPlane"}
    while new:
        found |= new
        bases = {base for name in new for base in base_names(name)}
        made = {each for name in new for each in made_by(name)}
        new = {each for each in (bases & DATAPLANE.keys()) | made if each != "LinkCounters"} - found
    return found


def handed(name: str, known: set[str]) -> set[str]:
    """Fields of a part that hold another part, or what is to be called: annotated so, or set from such an argument."""

    def is_such(annotation: ast.expr | None) -> bool:
        names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} if annotation else set()
        return bool(names & {"Callable", *known})

    body = DATAPLANE[name].body
    found = {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and is_such(node.annotation)
    }
    for function in (node for node in body if isinstance(node, ast.FunctionDef)):
        arguments = {each.arg for each in (*function.args.args, *function.args.kwonlyargs) if is_such(each.annotation)}
        for node in ast.walk(function):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and is_such(node.annotation):
                found.add(node.target.attr)
            elif isinstance(node, ast.Assign):
                value = node.value
                is_made = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in known
                if is_made or (isinstance(value, ast.Name) and value.id in arguments):
                    found |= {each.attr for each in node.targets if isinstance(each, ast.Attribute)}
    return found


def record_fields(known: set[str]) -> set[str]:
    """Fields of what passes through the data plane, and of entries of the FIB: links, messages, waiting ones."""
    names = {name for name in DATAPLANE if name not in known}
    own = {node.attr for name in names for node in stores(DATAPLANE[name])}
    annotated = {
        node.target.id
        for name in names
        for node in DATAPLANE[name].body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    return own | annotated


@functools.cache
def stores(tree: ast.AST) -> tuple[ast.Attribute, ...]:
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store))


def test_parts_of_the_data_plane_are_found() -> None:
    found = parts()
    assert {"Settlement", "Forwarder", "LinkEventReader", "ControllerContext", "LocalCopier", "DatagramFanout"} <= found
    assert {"_settlement", "_faults", "_fanout"} <= handed("Forwarder", {*found, "InternalErrorHandlers"})
    assert {"open_stream", "withdraw", "close_link"} <= handed("Port", found)


def test_parts_of_the_data_plane_get_what_they_need_when_they_are_made() -> None:
    found = parts()
    roles = {name for name in DATAPLANE if "Protocol" in base_names(name)}
    known = {*found, *roles, "InternalErrorHandlers"}
    fields = {name: handed(name, known) for name in found}
    # Names that records have too, which do change, say nothing of whose field is meant.
    from_outside = {field for names in fields.values() for field in names} - record_fields(known)
    wrong = [
        f"{path}:{node.lineno}: .{node.attr}"
        for path in MODULES.values()
        for node in stores(syntax_of(path))
        if node.attr in from_outside and not (isinstance(node.value, ast.Name) and node.value.id == "self")
    ]
    later = [
        f"{name}.{function.name}: self.{node.attr}"
        for name in found - {"Port"}  # it is told who the peer is when that has said so
        for function in DATAPLANE[name].body
        if isinstance(function, ast.FunctionDef) and function.name != "__init__"
        for node in stores(function)
        if node.attr in fields[name]
    ]
    assert not wrong + later, "\n".join(wrong + later)


# Machines of the core


def classes_in(folder: str) -> dict[str, ast.ClassDef]:
    """Classes of the modules below a folder, by name."""
    return {
        node.name: node
        for name, path in MODULES.items()
        if below(name, folder)
        for node in syntax_of(path).body
        if isinstance(node, ast.ClassDef)
    }


def is_record(node: ast.ClassDef) -> bool:
    """Whether a class only holds values: made by attrs, with slots, or of a kind that the language has for it."""
    kinds = {"Enum", "IntEnum", "NamedTuple", "Protocol", "TypedDict"}
    has_slots = any(isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__slots__" for each in node.body)
    is_of_kind = any(base.split(".")[-1] in kinds for base in bases_of(node))
    return has_slots or is_of_kind or bool(node.decorator_list)


def own_fields(node: ast.ClassDef) -> set[str]:
    """Fields that a class declares or sets itself."""
    declared = {
        each.target.id for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    return declared | {each.attr for each in stores(node) if ast.unparse(each.value) == "self"}


def machine_parts(node: ast.ClassDef, machines: set[str]) -> set[str]:
    """Fields of a class that hold a machine: made by it, or one of its arguments."""
    found: set[str] = set()
    for function in (each for each in node.body if isinstance(each, ast.FunctionDef)):
        arguments = {
            each.arg
            for each in (*function.args.args, *function.args.kwonlyargs)
            if each.annotation is not None and ast.unparse(each.annotation) in machines
        }
        for assignment in (each for each in ast.walk(function) if isinstance(each, ast.Assign)):
            value = assignment.value
            is_made = isinstance(value, ast.Call) and ast.unparse(value.func) in machines
            if is_made or (isinstance(value, ast.Name) and value.id in arguments):
                found |= {each.attr for each in assignment.targets if isinstance(each, ast.Attribute)}
    return found


def set_from_outside(folder: str, names: set[str], parts: set[str]) -> list[str]:
    """Places below a folder that set a field of one of these names of another object, or any of one of these parts."""
    return [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for module, path in MODULES.items()
        if below(module, folder)
        for node in stores(syntax_of(path))
        if ast.unparse(node.value) != "self"
        and (node.attr in names or (isinstance(node.value, ast.Attribute) and node.value.attr in parts))
    ]


def test_nobody_sets_a_field_of_a_machine_of_the_core_from_outside() -> None:
    core, everything = classes_in("router.core"), classes_in("router")
    machines = {name for name, node in core.items() if not is_record(node)}
    assert {"PoolTowardEgress", "MulticastSubscribers", "Fib", "ControlMessageSender", "Policy"} <= machines
    assert machines.isdisjoint({"Claimant", "Publisher", "AddressEntry", "TreeBranch", "UserState"})
    fields = {field for name in machines for field in own_fields(core[name])}
    of_records = {field for name, node in core.items() if name not in machines for field in own_fields(node)}
    parts = {field for name in machines for field in machine_parts(core[name], machines)}
    assert {"_greeter", "_sender", "local_subscribers", "share"} <= parts
    # Of names that others have too nothing is known without types.
    of_others = {field for name, node in everything.items() if name not in machines for field in own_fields(node)}
    wrong = [
        *set_from_outside("router.core", fields - of_records, parts),
        *set_from_outside("router", fields - of_others, set()),
    ]
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_nobody_sets_a_field_of_a_router_or_of_its_data_plane_from_outside() -> None:
    everything = classes_in("router")
    composed = {name: node for name, node in DATAPLANE.items() if name in {*parts(), "ControllerContext", "TurnClock"}}
    composed |= {name: everything[name] for name in ("RoundHandler", "ConnectionTurns", "Runtime", "ControlPacer")}
    composed |= {name: everything[name] for name in ("ManagementPairs", "MeshPresence", "Policy", "EndedLinkReaper")}
    del composed["Port"]  # it is the record of a connection, which engine and data plane share
    fields = {field for node in composed.values() for field in own_fields(node)}
    assert {"now", "_quieted", "stranded", "is_closed", "work_at", "drain_state"} <= fields
    # Of names that others have too only the name of the object tells whose they are.
    of_others = {field for name, node in everything.items() if name not in composed for field in own_fields(node)}
    holders = {"runtime", "data_plane", "settlement", "credit_manager", "forwarder", "clock", "pairs", "pacer"}
    wrong = set_from_outside("router", fields - of_others, set())
    wrong += [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path in MODULES.values()
        for node in stores(syntax_of(path))
        if node.attr in fields and ast.unparse(node.value).rpartition(".")[2].removeprefix("_") in holders
    ]
    assert not wrong, "\n".join(sorted(set(wrong)))


def test_nobody_sets_a_field_of_a_connection_or_of_a_socket_from_outside() -> None:
    folders = ("router.engine", "router.guard", "router.net", "router.daemon")
    everything = {name: node for folder in folders for name, node in classes_in(folder).items()}
    names = {"ByteStreams", "Connection", "AmqpsConnection", "FrameGuard", "Circuits", "AllClientLinks", "Daemon"}
    names |= {"NeighborLinks", "Listener", "AcceptedConnection", "Connector", "Pump", "PeerAuthentication"}
    names |= {"HttpServer"}
    assert names <= set(everything)
    fields = {field for name in names for field in own_fields(everything[name])}
    assert {"end_reason", "was_of_use", "told_refusal", "connector", "files", "is_given_up"} <= fields
    holders = {"connection", "client", "neighbor", "guard", "listener", "guest", "connector", "pump", "daemon"}
    wrong = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path in MODULES.values()
        if not path.is_relative_to(ROOTS["router"] / "bench")  # its clients have connections of their own
        for node in stores(syntax_of(path))
        if node.attr in fields and ast.unparse(node.value).rpartition(".")[2].removeprefix("_") in holders
    ]
    assert not wrong, "\n".join(wrong)


# Types of links and messages


def test_the_data_plane_asserts_of_nothing_that_it_is_a_link_or_a_message() -> None:
    # A field has the type of what it holds; keys of credit machines get theirs in one place.
    calls = [
        (module, node)
        for module, path in MODULES.items()
        if below(module, "router.dataplane")
        for node in nodes_of(path)
        if isinstance(node, ast.Assert | ast.Call)
    ]
    asserted = [
        f"{module}:{node.lineno}"
        for module, node in calls
        if isinstance(node, ast.Assert) and "isinstance" in ast.unparse(node.test)
    ]
    casting = {module for module, node in calls if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast"}
    assert asserted == []
    assert casting == {"router.dataplane.links", "router.dataplane.credit_key_types"}


def test_nobody_asks_a_link_or_a_message_for_a_role_by_what_it_lacks() -> None:
    # What a circuit has and a publisher's link has not is asked of the type.
    roles = {"root", "is_refused", "attached_at", "brokered"}
    asked = [
        f"{module}:{node.lineno}"
        for module, path in MODULES.items()
        if below(module, "router.dataplane") or below(module, "router.engine")
        for node in nodes_of(path)
        if isinstance(node, ast.Compare)
        and isinstance(node.left, ast.Attribute)
        and node.left.attr in roles
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value is None
    ]
    assert asked == []
