"""The documentation says nothing that the program refutes."""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import mesh_config
import router
from mesh_config.check import check_file
from mesh_config.findings import Severity
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    KINDS,
    CircuitStates,
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
)
from router.management.problem_kinds import PROBLEM_KINDS
from router.security.certificate_expiry import CERTIFICATE_DAYS
from tests.helpers.syntax import docstrings_of, nodes_of, syntax_of

ROOT = Path(__file__).parent.parent
SOURCES = [path for package in (router, mesh_config) for path in Path(package.__file__).parent.rglob("*.py")]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


YAML_BLOCKS = [
    pytest.param(block, id=f"{page_id(page)}-{number}")
    for page in PAGES
    for number, block in enumerate(
        re.findall(r"^```yaml\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    if re.search(r"^routers?:$(?!\n *- )", block, re.MULTILINE)  # a list is of a file of details of what-if
]


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_page_read_as_it_lies_in_a_clone_lacks_nothing(page: Path) -> None:
    """What only Sphinx shows, as the content of another file, can be reached by a link, too."""
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"\{(?:doc|ref|term|any|download)\}`", text) == []
    for file in re.findall(r"^```\{literalinclude\} (\S+)$", text, re.MULTILINE):
        assert f"]({file})" in text


@pytest.mark.parametrize("block", YAML_BLOCKS)
def test_meshes_of_the_documentation_are_right(block: str, tmp_path: Path) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(block, encoding="utf-8")
    findings = check_file(file)
    # A mesh of several machines has listeners that are no loopback: a warning that nothing in the file can help.
    assert [
        finding
        for finding in findings
        if finding.severity is Severity.ERROR or "is open to other machines" not in finding.message
    ] == []


def without_blocks(text: str) -> str:
    """A page without what it shows of files and sessions."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", without_blocks(page.read_text(encoding="utf-8")))
    places = {link: Path(os.path.normpath(page.parent / link)) for link in links}
    missing = [link for link, place in places.items() if not place.exists()]
    # What is tested may be installed: then its sources are there, and not beside the docs.
    sources = Path(router.__file__).parents[1]
    assert [link for link in missing if not (sources / places[link].relative_to(ROOT)).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_anchors_of_links_name_headings(page: Path) -> None:
    # A label of Sphinx, `(name)=`, leads nowhere where pages are read in the repository.
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", without_blocks(text))
    places = [(link, Path(os.path.normpath(page.parent / link)) if link else page, anchor) for link, anchor in links]
    made = {ROOT / name for name in pages_made_by_the_build()}
    missing = [
        f"{link}#{anchor}"
        for link, place, anchor in places
        if place.suffix == ".md" and place not in made and anchor not in anchors(page_id(place))
    ]
    assert missing == []
    assert re.findall(r"^\([\w-]+\)=$", text, re.MULTILINE) == []


@pytest.mark.parametrize("folder", ["dataplane", "core/forwarding"])
def test_every_module_that_messages_pass_has_a_row_that_says_what_it_does(folder: str) -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    rows = {
        name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+\.py)`", row)
    }
    modules = {path.name for path in (Path(router.__file__).parent / folder).glob("*.py")} - {"__init__.py"}
    assert modules - rows == set()


def test_every_marked_deviation_is_explained() -> None:
    page = (ROOT / "docs" / "explanation" / "deviations.md").read_text(encoding="utf-8")
    explained = re.findall(r"^## (DEV-\d+): ", page, re.MULTILINE)
    marked = {mark for path in SOURCES for mark in re.findall(r"DEV-\d+", path.read_text(encoding="utf-8"))}
    assert set(explained) - marked == {"DEV-12"}, "the one that is the absence of something"
    assert marked <= set(explained)
    assert [f"DEV-{number}" for number in range(1, len(explained) + 1)] == explained


# What sources cite

CHECKED = [path for folder in ("router", "mesh_config", "tests", "docs") for path in (ROOT / folder).rglob("*")]
CITING = sorted(path for path in [*CHECKED, ROOT / "setup.py"] if path.suffix in {".py", ".pxd"})
CITATION = re.compile(r"\b(?P<page>(?:docs|examples)/[\w/-]+\.md)(?:#(?P<anchor>[\w-]+))?")
FOREIGN_PAPER = re.compile(
    r"[\w-]+\.md, (?:sections? )?\d|\b(?:[Dd]esign|[Pp]rotocol), (?:sections? )?\d|\bof the design\b"
)
"""Sections by their number, which no page of ours has, and a design that is nowhere."""


def anchors(page: str) -> set[str]:
    """What `#` may be followed by: the headings of a page, as Sphinx and GitHub name them."""
    text = without_blocks((ROOT / page).read_text(encoding="utf-8"))
    headings = re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def pages_made_by_the_build() -> set[str]:
    return {f"docs/{line}" for line in (ROOT / "docs" / ".gitignore").read_text(encoding="utf-8").split()}


def test_sources_cite_pages_and_headings_that_are_there() -> None:
    missing = []
    for path in CITING:
        for cited in CITATION.finditer(path.read_text(encoding="utf-8")):
            page, anchor = cited["page"], cited["anchor"]
            if page in pages_made_by_the_build():
                continue
            if not (ROOT / page).is_file() or (anchor is not None and anchor not in anchors(page)):
                missing.append(f"{page_id(path)}: {cited[0]}")
    assert missing == []


def test_sources_cite_no_paper_that_is_not_here() -> None:
    # Names that stand nowhere in the repository are of no use to a reader.
    names = {page.name for page in PAGES} | {Path(page).name for page in pages_made_by_the_build()}
    foreign = []
    for path in CITING:
        text = path.read_text(encoding="utf-8")
        if path != Path(__file__):
            foreign += [f"{page_id(path)}: {cited[0]}" for cited in FOREIGN_PAPER.finditer(text)]
            comments = re.findall(r"\bSource: (.*?)(?:\"\"\"|\n\s*\n)", text, re.DOTALL)
            cited_names = {name for comment in comments for name in re.findall(r"[\w-]+\.md\b", comment)}
            foreign += [f"{page_id(path)}: {name}" for name in cited_names - names]
    assert foreign == []


# Names of the code

UNIT = Path(router.__file__).parent / "deployment" / "amqp-mesh@.service"
FOREIGN = {
    *{"DoNotSchedule", "OrderedReady", "ScheduleAnyway"},
    *{"ConfigOpts", "LinkSpeedRaw", "MessageDeliveryFailure", "MessagingTimeout"},
    *re.findall(r"^(\w+)=", UNIT.read_text(encoding="utf-8"), re.MULTILINE),
    *re.findall(r"- alert: (\w+)", (ROOT / "examples" / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")),
}
"""Of Kubernetes, oslo.config, oslo.messaging and GraphML; what the unit says to systemd; and alerts."""
TOP = ("router", "mesh_config", "tests", "docs", "scripts", "requirements", "newsfragments", "examples")


def quoted(page: Path) -> list[str]:
    """What stands between backquotes, outside of listings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def identifiers() -> set[str]:
    """Every name that the sources define or use."""
    names: set[str] = set()
    for path in SOURCES:
        for node in nodes_of(path):
            match node:
                case (
                    ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.Name(id=name) | ast.Attribute(attr=name)
                ):
                    names.add(name)
                case _:
                    pass
    return names


def test_classes_that_the_documentation_names_are_there() -> None:
    known = identifiers() | FOREIGN
    named = {
        (page_id(page), word.partition(".")[0])
        for page in PAGES
        for word in quoted(page)
        if re.fullmatch(r"_?[A-Z][a-z]+([A-Z][a-z0-9]*)+(\.\w+)*", word)
    }
    assert len(named) > 20
    assert sorted((page, name) for page, name in named if name not in known) == []


def test_tests_that_the_documentation_names_are_there() -> None:
    tests = list((ROOT / "tests").rglob("test_*.py"))
    known = {path.stem for path in tests} | {
        node.name
        for path in tests
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    named = {
        (page_id(page), word)
        for page in PAGES
        for word in re.findall(r"(?<![\w/*-])test_\w+(?!\w*\*)", without_blocks(page.read_text(encoding="utf-8")))
    }
    assert any(page == "CONTRIBUTING.md" for page, _ in named)
    assert len(named) > 60
    assert sorted((page, name) for page, name in named if name not in known) == []


def demangled(name: str) -> list[str]:
    """The parts of a name that Cython has given to a C function: each with its length before it, but for the last."""
    parts, rest = [], name
    while found := re.match(r"(\d+)", rest):
        begin, size = found.end(), int(found[1])
        parts.append(rest[begin : begin + size])
        rest = rest[begin + size :].removeprefix("_")
    return [*parts, rest]


def test_c_functions_that_the_documentation_names_are_those_of_the_sources() -> None:
    text = (ROOT / "docs" / "how_to" / "profile.md").read_text(encoding="utf-8")
    names = re.findall(r"`__pyx_f_(\w+)`", text)
    assert names
    for name in names:
        *modules, kind, function = demangled(name)
        path = Path(router.__file__).parents[1].joinpath(*modules).with_suffix(".py")
        assert path.is_file(), f"{path}: {name}"
        classes = [node for node in syntax_of(path).body if isinstance(node, ast.ClassDef)]
        (found,) = (node for node in classes if node.name == kind)
        assert function in {each.name for each in found.body if isinstance(each, ast.FunctionDef)}


def test_how_to_contribute_has_each_program_that_writes_docs() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    programs = {path.name for path in (ROOT / "docs").glob("*.py")} - {"conf.py"}
    assert len(programs) > 6
    assert sorted(name for name in programs if f"`python docs/{name}" not in text) == []


def test_each_extra_that_is_for_users_has_its_row() -> None:
    tutorial = (ROOT / "docs" / "tutorials" / "first-mesh.md").read_text(encoding="utf-8")
    section = tutorial.partition("### Extras\n")[2].partition("\n## ")[0]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    developers = {"audit", "dev", "dev-router", "lint", "test", "types"}
    assert set(re.findall(r"^\| `([\w-]+)` \|", section, re.MULTILINE)) == extras.keys() - developers


SHOWN_FILE = re.compile(r"`([\w-]+\.\w+)`[^`]*:\n\n```\w+\n")


def is_there(name: str) -> bool:
    """Whether a file or folder has that name, or, of a single file, that end of its path."""
    roots = (ROOT, Path(router.__file__).parents[1])
    if name.partition("/")[0] in TOP:
        return any(next(root.glob(name), None) is not None for root in roots)
    return any(next((root / top).glob(f"**/{name}"), None) is not None for root in roots for top in TOP)


def test_files_and_folders_that_the_documentation_names_are_there() -> None:
    made = pages_made_by_the_build() | {"docs/_build/html"}
    named = {
        (page_id(page), word.rstrip("/"))
        for page in PAGES
        for word in quoted(page)
        if re.fullmatch(rf"({'|'.join(TOP)})/[\w/.*-]*|[\w/*]\w[\w/*]*\.(py|pxd|pxi)", word)
    }
    assert len(named) > 50
    # A page may have a file shown that its reader is to write.
    shown = {(page_id(page), name) for page in PAGES for name in SHOWN_FILE.findall(page.read_text(encoding="utf-8"))}
    assert sorted(each for each in named - shown if each[1] not in made and not is_there(each[1])) == []


# Releases


def test_the_newest_release_in_the_changelog_is_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.findall(r"^## (\S+) \(\d{4}-\d\d-\d\d\)$", changes, re.MULTILINE)
    assert found[0] == router.__version__


# Docstrings

RIDDLES = ("How", "What", "When", "Where", "Which", "Who", "Whom", "Whose")


def test_docstrings_begin_with_what_a_thing_is_or_does_and_no_question() -> None:
    riddles = []
    for path in SOURCES:
        name = path.relative_to(Path(router.__file__).parents[1]).as_posix()
        for line, text in docstrings_of(path):
            if text.split(maxsplit=1)[0].rstrip(",:;") in RIDDLES:
                riddles.append(f"{name}:{line}: {text[:60]}")
    assert riddles == []


LEANING = re.compile(
    r"(The same|After|And|As|At|Because|Before|Beside|Between|Beyond|By|For|From|Had|Has|However|In|"
    r"Is|It|Its|More|Nobody|Not|Nothing|Of|On|Since|So|Some|Such|That|Their|Them|Then|"
    r"There|These|They|Those|To|Under|Until|Up|Was|While|With)\b"
)
"""First words of a docstring that goes on where another one has stopped, or whose noun is in another one."""


def leans(text: str) -> bool:
    """Whether a docstring can't be read without the one before it."""
    begins_small = text[0].islower() and not text.startswith("amqp-mesh")
    return begins_small or text[-1] in ",;" or LEANING.match(text) is not None


def test_each_docstring_can_be_read_by_itself() -> None:
    read, leaning = 0, []
    for path in SOURCES:
        name = path.relative_to(Path(router.__file__).parents[1]).as_posix()
        for line, text in docstrings_of(path):
            read += 1
            if leans(text):
                leaning.append(f"{name}:{line}: {text[:60]}")
    assert read > 3000
    assert leaning == []


# What docstrings refer to

MODULES = {path.relative_to(Path(router.__file__).parents[1]).as_posix(): path for path in SOURCES}
OF_OTHERS = ("attrs", "proton", "pyspark", "DataSource")
"""First words of names that are another project's,"""
ENTITIES = ("router.address", "router.link", "router.node")
"""and the types of entities that management knows."""


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """What the nodes of a module or a class define: of a class also what is assigned to its objects."""
    found = set()
    for child in nodes:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(child.name)
        elif isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            found.add(child.id)
        elif isinstance(child, ast.Attribute) and isinstance(child.ctx, ast.Store):
            found.add(child.attr)
        elif isinstance(child, ast.alias):
            found.add(child.asname or child.name)
    return found


Definitions = tuple[dict[str, set[str]], dict[str, set[str]], dict[str, set[str]]]


@cache
def defined() -> Definitions:
    """By dotted name what modules define, by name what classes do, and what these are derived from."""
    by_module, by_class, bases = {}, defaultdict(set), defaultdict(set)
    for name, path in MODULES.items():
        by_module[name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")] = names_in(nodes_of(path))
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                by_class[node.name] |= names_in(ast.walk(node))
                derived = dict(ast.iter_fields(node))["bases"]
                bases[node.name] |= {ast.unparse(base).rpartition(".")[2] for base in derived}
    return by_module, dict(by_class), bases


@cache
def packages() -> set[str]:
    """The words of which names of modules consist."""
    return {part for module in defined()[0] for part in module.split(".")}


@cache
def modules_by_end() -> dict[str, list[str]]:
    """Modules by each end of their dotted names."""
    found = defaultdict(list)
    for module in defined()[0]:
        parts = module.split(".")
        for begin in range(len(parts)):
            found[".".join(parts[begin:])].append(module)
    return found


def leads_somewhere(reference: str) -> bool:
    """Whether a dotted name in a docstring leads to a module, or to something in a module or a class of ours."""
    by_module, by_class, bases = defined()
    parts = reference.split(".")
    if reference in ENTITIES or parts[0] in OF_OTHERS or parts[0] in sys.stdlib_module_names:
        return True
    if parts[0] in by_class:
        line, seen = [parts[0]], set()
        while line:
            name = line.pop()
            if parts[1] in by_class.get(name, set()):
                return True
            seen.add(name)
            line += [base for base in bases[name] if base not in seen]
    if parts[0] not in packages() and not any(part[:1].isupper() for part in parts):
        return True  # a variable and what it has
    for size in range(len(parts), 0, -1):
        found = [by_module[module] for module in modules_by_end().get(".".join(parts[:size]), ())]
        if found:
            return size == len(parts) or any(parts[size] in names for names in found)
    return False


def references(text: str) -> list[str]:
    """The dotted names and the classes that stand in backquotes."""
    quoted = re.findall(r"`([^`\n]+)`", text)
    dotted = [name.removesuffix("()") for name in quoted if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(\(\))?", name)]
    return [name for name in dotted if name.rpartition(".")[2] not in ("html", "json", "md", "pxd", "pxi", "yaml")]


def test_modules_and_classes_that_docstrings_name_are_there() -> None:
    files = {Path(name).name for name in MODULES}
    stale = []
    for name, path in MODULES.items():
        for line, text in docstrings_of(path):
            for reference in references(text):
                is_known = reference.rpartition(".")[0].rpartition("/")[2] + ".py" in files
                if not (is_known if reference.endswith(".py") else leads_somewhere(reference)):
                    stale.append(f"{name}:{line}: {reference}")
    assert stale == []


@pytest.mark.parametrize(
    ("reference", "is_right"),
    [
        ("router.dataplane.links.Transfer", True),
        ("core.forwarding.fib", True),
        ("core.forwarding.treatments", False),
        ("credit_actions.Grant", True),
        ("orders.CreditActions", False),
        ("SubscriberLink.port", True),
        ("SubscriberLink.drawer", False),
        ("transfer.state", True),
    ],
)
def test_a_stale_reference_is_told_from_one_that_leads_somewhere(reference: str, is_right: bool) -> None:
    assert leads_somewhere(reference) is is_right


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it is a command, whose docstring its operators read."""
    return any("command" in ast.unparse(decorator) for decorator in function.decorator_list)


def public_functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Those of a module and of its public classes."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public_functions(child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            yield child


def test_docstrings_of_public_functions_speak_of_arguments_that_have_a_unit() -> None:
    silent = []
    for path in SOURCES:
        name = path.relative_to(Path(router.__file__).parents[1]).as_posix()
        for function in public_functions(syntax_of(path)):
            text = ast.get_docstring(function) or ""
            if is_command(function) or text.startswith("See `"):
                continue
            for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs):
                kind = ast.unparse(argument.annotation) if argument.annotation is not None else ""
                if kind in ("float", "float | None") and not re.search(rf"\b{argument.arg}\b", text):
                    silent.append(f"{name}:{function.lineno}: {function.name}({argument.arg})")
    assert silent == []


def test_no_name_of_a_test_is_longer_than_80_characters() -> None:
    names = [
        node.name
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    ]
    assert [name for name in names if len(name) > 80] == []


PAPER = re.compile(
    r"\b(?:findings?|issues?|tickets?|reviews?|bugs?) #?[A-Z]?\d|\breview(?:ed|er)?\b|#\d+", re.IGNORECASE
)
"""Numbers of papers that nobody has at hand."""


def test_tests_are_named_by_rules_and_not_by_papers_about_them() -> None:
    named = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        texts = list(docstrings_of(path))
        texts += [
            (node.lineno, node.name.replace("_", " "))
            for node in nodes_of(path)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ]
        named += [f"{page_id(path)}:{line}: {text[:60]}" for line, text in texts if PAPER.search(text)]
    assert named == []


# The protocol between routers

ME, PEER = RouterId("a"), RouterId("b")
CONTROL_MESSAGES: list[ControlMessage] = [
    Hello(id=ME, instance=1, seen=(PEER,)),
    RouterAdvertisement(id=ME, instance=1, ls_seq=1, mobile_seq=1),
    LinkStateRequest(id=ME),
    LinkStateUpdate(id=ME, instance=1, ls_seq=1, peers={PEER: 1}, has_trees=True),
    MobileAddressUpdate(id=ME, mobile_seq=1, add=("M0x",), hints=(1,)),
    MobileAddressUpdate(id=ME, mobile_seq=1, exist=("M0x",), hints=(1,), part=1, parts=2),
    MobileAddressRequest(id=ME, have_seq=1, parts=4, part=1, part_seq=1),
    CircuitStates(id=ME, weights={"x": 1}, closed=("y",), loads={"z": (1, 1)}),
]
TYPES = {int: "integer", str: "string", list: "list", dict: "map"}


def test_the_reference_of_the_protocol_has_every_key_of_every_message() -> None:
    page = (ROOT / "docs" / "reference" / "inter-router-protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (all|[A-Z]+)(?: \*)? \| `(\w+)`(?: \*)? \| (\w+)", page, re.MULTILINE)
    of_all = {key: kind for message, key, kind in rows if message == "all"}
    written: set[tuple[str, str, str]] = set()
    for message in CONTROL_MESSAGES:
        body = {key: TYPES[type(value)] for key, value in message.to_body().items()}
        assert {key: body.pop(key) for key in of_all} == of_all
        written |= {(message.opcode, key, kind) for key, kind in body.items()}
    assert {message.opcode for message in CONTROL_MESSAGES} == set(KINDS)
    assert {row for row in rows if row[0] != "all"} == written


# The reference of log lines

LEVELS = {"info": "info", "warning": "warning", "error": "error", "exception": "error"}


def log_calls() -> Iterator[tuple[str, str, set[str]]]:
    """Every (event, level, fields) that the sources log, or have reported by the core."""
    for path in SOURCES:
        for function in (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call) and node.args):
                level = call.func.attr if isinstance(call.func, ast.Attribute) else ""
                if level not in LEVELS:
                    continue
                fields = {word.arg for word in call.keywords if word.arg is not None}
                if "exc_info" in fields:  # that is how it is given; what is written is called otherwise
                    fields = fields - {"exc_info"} | {"exception"}
                for event in event_names(call.args[0], function):
                    yield event, LEVELS[level], fields | ({"exception"} if level == "exception" else set())


def event_names(argument: ast.expr, function: ast.AST) -> Iterator[str]:
    """The first argument of a call that logs: a constant, or a variable that is one of several."""
    if isinstance(argument, ast.Name):
        assigned = (
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == argument.id for target in node.targets)
        )
        for value in assigned:
            if isinstance(value, ast.IfExp):
                yield from event_names(value.body, function)
                yield from event_names(value.orelse, function)
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value


def documented_logs() -> Mapping[str, tuple[set[str], set[str]]]:
    """The rows of the page: levels and fields of each event."""
    page = (ROOT / "docs" / "reference" / "logs.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|([^|]*)\| [^|]+\|$", page, re.MULTILINE)
    return {event: (set(levels.split(", ")), set(re.findall(r"`(\w+)`", fields))) for event, levels, fields in rows}


def test_the_reference_of_logs_has_every_event_with_its_levels_and_fields() -> None:
    levels: dict[str, set[str]] = defaultdict(set)
    fields: dict[str, set[str]] = defaultdict(set)
    for event, level, words in log_calls():
        levels[event].add(level)
        fields[event] |= words
    documented = documented_logs()
    # Its level is that of the finding, and what a finding doesn't have is left out.
    assert documented["settings_finding"] == (
        {severity.value for severity in Severity},
        {"place", "key", "message", "expected", "nearest"},
    )
    assert {event: (levels[event], fields[event]) for event in levels} == {
        event: row for event, row in documented.items() if event != "settings_finding"
    }


def test_the_table_of_problems_has_every_kind_once() -> None:
    page = (ROOT / "docs" / "how_to" / "find-what-is-wrong.md").read_text(encoding="utf-8")
    table = page.split("| problem | what it is |")[1].split("\n\n")[0]
    named = [
        kind for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for kind in re.findall(r"`([\w-]+)`", row)
    ]
    assert sorted(named) == sorted(PROBLEM_KINDS)
    (days,) = re.findall(r"it ends within (\d+) days", table)
    assert int(days) == CERTIFICATE_DAYS
