"""The `.pxd` files say what the sources beside them say, and what proton says: C would take any mistake on trust."""

from __future__ import annotations

import ast
import ctypes
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cffi
import cproton_ffi
import pytest

from router.binding import handles
from router.speed import hot_modules
from tests.speed.declarations import HANDLES, ROOT, Declared, classes, defined, hidden_functions, inherited

TEXT = HANDLES.read_text(encoding="utf-8")
EXTERNS = dict(re.findall(r"^    extern ((?:[\w*]+ )+\**(pn\w+)\([^)]*\));$", TEXT, re.MULTILINE))
EXTERNS = {name: prototype for prototype, name in EXTERNS.items()}
CALLED = dict(re.findall(r"^    [\w ]*[\w*] \**(pn\w+)\(([^)]*)\)(?: noexcept)?$", TEXT, re.MULTILINE))
CONSTANTS = {
    name: int(value, 0)
    for block in re.findall(r"^cdef enum:\n((?:    .*\n)+)", TEXT, re.MULTILINE)
    for name, value in re.findall(r"^    (\w+) = (\w+)$", block, re.MULTILINE)
}
CLASSES = classes()
by_class = pytest.mark.parametrize("declared", CLASSES.values(), ids=[f"{module}.{name}" for module, name in CLASSES])


# Proton


@pytest.fixture(scope="module")
def as_declared() -> cffi.FFI:
    """The prototypes of handles.pxd, as a C compiler reads them."""
    ffi = cffi.FFI()
    (tag,) = re.findall(r"^    (typedef struct \{[^}]*\} mesh_tag_t;)$", TEXT, re.MULTILINE)
    ffi.cdef("\n".join([tag, *(f"{prototype};" for prototype in EXTERNS.values())]))
    return ffi


def shape(ffi: Any, kind: Any) -> object:
    """How a value is passed: what differs here is passed differently. Addresses are numbers, whatever they are of."""
    if kind.kind == "struct":
        return tuple(shape(ffi, field.type) for _, field in kind.fields)
    if kind.kind == "void":
        return None
    if kind.kind == "enum":
        return ffi.sizeof("int"), True
    if kind.kind == "pointer":
        return ffi.sizeof("void *"), False
    return ffi.sizeof(kind), int(ffi.cast(kind, -1)) < 0


def signature(ffi: Any, kind: Any) -> object:
    """How a function is called."""
    function = kind.item if kind.kind == "pointer" else kind
    return shape(ffi, function.result), *(shape(ffi, argument) for argument in function.args)


def test_the_tests_read_all_that_is_declared() -> None:
    assert len(EXTERNS) == TEXT.count("    extern ")
    assert len(CONSTANTS) == len(re.findall(r"^    [A-Z_]+ = ", TEXT, re.MULTILINE))
    assert set(CALLED) <= set(EXTERNS)
    assert {"pn_delivery", "pn_link_send", "pn_transport_pop"} <= set(EXTERNS)
    assert {"NULL", "LINK_FLOW", "ACCEPTED"} <= set(CONSTANTS)


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_proton(name: str) -> None:
    assert getattr(handles, name) == CONSTANTS[name]
    assert (0 if name == "NULL" else getattr(cproton_ffi.lib, f"PN_{name}")) == CONSTANTS[name]


@pytest.mark.parametrize("name", EXTERNS)
def test_functions_are_visible_in_the_process(name: str) -> None:
    assert getattr(ctypes.CDLL(None), name)


@pytest.mark.parametrize("name", EXTERNS)
def test_functions_are_declared_as_the_interpreted_code_calls_them(name: str, as_declared: cffi.FFI) -> None:
    # cffi knows what it was told, whether or not a library is there.
    functions = as_declared.dlopen(cproton_ffi.__file__)
    declared = as_declared.typeof(getattr(functions, name))
    called = handles.ffi.typeof(getattr(handles.lib, name))
    assert signature(as_declared, declared) == signature(handles.ffi, called)


@pytest.mark.parametrize("name", [name for name in EXTERNS if hasattr(cproton_ffi.lib, name)])
def test_functions_are_declared_as_proton_has_them(name: str, as_declared: cffi.FFI) -> None:
    functions = as_declared.dlopen(cproton_ffi.__file__)
    declared = as_declared.typeof(getattr(functions, name))
    proton = cproton_ffi.ffi.typeof(getattr(cproton_ffi.lib, name))
    assert signature(as_declared, declared) == signature(cproton_ffi.ffi, proton)


@pytest.mark.parametrize("name", CALLED)
def test_functions_are_called_with_as_many_arguments_as_they_have(name: str) -> None:
    arguments = EXTERNS[name].partition("(")[2]
    assert CALLED[name].count(",") == arguments.count(",")


def test_no_call_asks_whether_python_has_raised() -> None:
    """Without `noexcept` Cython looks for an exception after each call."""
    declared = TEXT.split('"""')[2].partition("cdef enum")[0]
    assert [line for line in declared.splitlines() if line.endswith(")")] == []


# Sources


@pytest.mark.parametrize("module", hot_modules())
def test_every_declaration_has_its_source(module: str) -> None:
    assert hot_modules()[module].is_file()


@by_class
def test_every_attribute_is_declared(declared: Declared) -> None:
    """Else assigning it is an AttributeError, in compiled code alone."""
    _, named = defined(declared)
    assert named - inherited(declared) == set()


@by_class
def test_every_declared_attribute_is_one(declared: Declared) -> None:
    _, named = defined(declared)
    assert (declared.visible | declared.hidden) - named == set()


def uses() -> Iterator[tuple[Path, ast.AST]]:
    """Every node of the code that is never compiled."""
    hot = set(hot_modules().values())
    tests = Path(__file__).parents[1]
    for path in (*ROOT.rglob("*.py"), *tests.rglob("*.py")):
        if path not in hot:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path, node


def names_of_others() -> Iterator[str]:
    """What is called by the same name in another class."""
    for declared in CLASSES.values():
        yield from (*declared.visible, *declared.visible_methods)
    for _, node in uses():
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_interpreted_code_uses_nothing_that_only_compiled_code_has() -> None:
    hidden = {name for declared in CLASSES.values() for name in (*declared.hidden, *declared.hidden_methods)}
    hidden -= set(names_of_others())
    wrong = [
        f"{path}:{node.lineno}: .{node.attr}"
        for path, node in uses()
        if isinstance(node, ast.Attribute) and node.attr in hidden
    ]
    assert not wrong, "\n".join(wrong)


def test_interpreted_code_imports_nothing_that_only_compiled_code_has() -> None:
    hidden = set(hidden_functions())
    wrong = [
        f"{path}:{node.lineno}: {node.module}.{alias.name}"
        for path, node in uses()
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in hidden
        or (node.module in hot_modules() and not hasattr(importlib.import_module(node.module), alias.name))
    ]
    assert not wrong, "\n".join(wrong)
