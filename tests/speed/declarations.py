"""What the `.pxd` files declare and the sources beside them define, read from both."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import attrs

import router
from router.speed import hot_modules

ROOT = Path(router.__file__).parent
HANDLES = ROOT / "binding" / "proton_functions.pxd"

_CLASS = re.compile(r"^cdef class (\w+)(?:\((\w+)\))?:")
_ATTRIBUTE = re.compile(r"^    cdef (public |readonly )?[\w. :\[\]*]+? (\w+(?:, \w+)*)(?:\[\d+\])?$")
_METHOD = re.compile(r"^    (c(?:p)?def) (?:inline )?(?:[\w.\[\]*]+ )*(\w+)\(self")
_FUNCTION = re.compile(r"^(c(?:p)?def) (?!class )(?:inline )?(?:[\w.\[\]*]+ )*(\w+)\(")


_OWNER_OR_LOCALS = re.compile(
    r"^cdef class (?P<owner>\w+)|^(?P<indent> *)@cython\.locals\((?P<names>[^)]*)\)\n"
    r" *c(?:p)?def (?:inline )?(?:[\w.\[\]*]+ )*(?P<function>\w+)\(",
    re.MULTILINE,
)


@attrs.frozen
class Declared:
    """A class that is compiled, as its `.pxd` has it."""

    module: str
    name: str
    base: str | None
    visible: set[str] = attrs.Factory(set)
    """Attributes that Python sees too."""
    hidden: set[str] = attrs.Factory(set)
    """Attributes of C alone."""
    visible_methods: set[str] = attrs.Factory(set)
    """Methods that Python can call too."""
    hidden_methods: set[str] = attrs.Factory(set)
    """Methods that only compiled code can call."""


def typed_locals(module: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each function of a module whose `.pxd` gives local variables types: its class or "", its name, and those."""
    text = hot_modules()[module].with_suffix(".pxd").read_text(encoding="utf-8")
    owner = ""
    for match in _OWNER_OR_LOCALS.finditer(text):
        if match["names"] is None:
            owner = match["owner"]
        else:
            names = [each.strip().partition("=") for each in match["names"].split(",")]
            yield owner if match["indent"] else "", match["function"], {name: kind for name, _, kind in names if name}


def _functions(module: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Each function of a module, with the class that it belongs to, or ""."""
    tree = _tree(module)
    owners = [("", tree), *((node.name, node) for node in tree.body if isinstance(node, ast.ClassDef))]
    for owner, body in owners:
        for function in body.body:
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                yield owner, function


def asked_kinds(module: str) -> Mapping[tuple[str, str], set[tuple[str, str]]]:
    """Variables that each function of a module asks what they are, with the class, by its own class and its name.

    Those of an `assert` are left out: what is something else is an error there too.
    """
    found: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for owner, function in _functions(module):
        asserted = {id(each) for node in ast.walk(function) if isinstance(node, ast.Assert) for each in ast.walk(node)}
        found[owner, function.name] = {
            (ast.unparse(node.args[0]), kind)
            for node in ast.walk(function)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance" and id(node) not in asserted
            for kind in re.findall(r"\w+", ast.unparse(node.args[1]))
        }
    return found


def local_variables(module: str) -> Mapping[tuple[str, str], set[str]]:
    """Names that each function of a module takes or sets, by its class, or "", and its name."""
    found: dict[tuple[str, str], set[str]] = {}
    for owner, function in _functions(module):
        stored = {
            node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        found[owner, function.name] = stored | {each.arg for each in function.args.args}
    return found


@cache
def classes() -> Mapping[tuple[str, str], Declared]:
    """Every compiled class, by module and name."""
    found: dict[tuple[str, str], Declared] = {}
    for module, source in hot_modules().items():
        now: Declared | None = None
        for line in source.with_suffix(".pxd").read_text(encoding="utf-8").splitlines():
            if match := _CLASS.match(line):
                now = found[module, match[1]] = Declared(module, match[1], match[2])
            elif line and not line.startswith((" ", "#")):
                now = None
            elif now is not None:
                if match := _METHOD.match(line):
                    (now.visible_methods if match[1] == "cpdef" else now.hidden_methods).add(match[2])
                elif match := _ATTRIBUTE.match(line):
                    (now.visible if match[1] else now.hidden).update(match[2].split(", "))
    return found


def hidden_functions() -> Iterator[tuple[str, str]]:
    """Functions of modules that only compiled code can call."""
    for module, source in hot_modules().items():
        for line in source.with_suffix(".pxd").read_text(encoding="utf-8").splitlines():
            if (match := _FUNCTION.match(line)) and match[1] == "cdef":
                yield module, match[2]


def inherited(declared: Declared) -> set[str]:
    """Attributes of a compiled class and of those that it is derived from."""
    own = declared.visible | declared.hidden
    if declared.base is None:
        return own
    text = hot_modules()[declared.module].with_suffix(".pxd").read_text(encoding="utf-8")
    found = [each for (_, name), each in classes().items() if name == declared.base]
    (base,) = found if len(found) == 1 else (each for each in found if f"from {each.module} cimport" in text)
    return own | inherited(base)


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(hot_modules()[module].read_text(encoding="utf-8"))


def defined(declared: Declared) -> tuple[set[str], set[str]]:
    """Attributes that the source of a class assigns to `self`, and all that it names: annotated ones and slots too."""
    (body,) = (
        node for node in _tree(declared.module).body if isinstance(node, ast.ClassDef) and node.name == declared.name
    )
    setters = {
        node.name
        for node in body.body
        if isinstance(node, ast.FunctionDef) and any(isinstance(each, ast.Attribute) for each in node.decorator_list)
    }
    assigned = {
        node.attr
        for node in ast.walk(body)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    } - setters
    named = set(assigned)
    for node in body.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if not ast.unparse(node.annotation).startswith(("ClassVar", "Final")):
                named.add(node.target.id)
        elif isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__slots__" for target in node.targets
        ):
            named.update(ast.literal_eval(node.value))
    return assigned, named
