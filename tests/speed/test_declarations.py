"""The `.pxd` files say what the sources beside them say, and what proton says: C would take any mistake on trust."""

from __future__ import annotations

import ast
import ctypes
import importlib
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import cproton_ffi
import pytest

from router.binding import generate, proton_functions
from router.binding.cdef import PROTON
from router.speed import DECLARATIONS, hot_modules
from tests.speed.declarations import (
    HANDLES,
    ROOT,
    Declared,
    asked_kinds,
    classes,
    defined,
    hidden_functions,
    inherited,
    local_variables,
    typed_locals,
)

TEXT = HANDLES.read_text(encoding="utf-8")
FUNCTIONS = [name for _, name, _ in generate.prototypes()]


def numbers_of_c(path: Path) -> dict[str, int]:
    """The constants that a `.pxd` declares, by name."""
    return {
        name: int(value, 0)
        for block in re.findall(r"^cdef enum:\n((?:    .*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        for name, value in re.findall(r"^    (\w+) = (-?\w+)$", block, re.MULTILINE)
    }


def numbered_declarations() -> list[Path]:
    """Each `.pxd` beside interpreted code that says numbers again."""
    paths = [path for path in ROOT.rglob("*.pxd") if path.stem in DECLARATIONS and numbers_of_c(path)]
    assert len(paths) > 4
    return sorted(paths)


CONSTANTS = numbers_of_c(HANDLES)
CLASSES = classes()
by_class = pytest.mark.parametrize("declared", CLASSES.values(), ids=[f"{module}.{name}" for module, name in CLASSES])


# Proton


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
    assert len(FUNCTIONS) == len(set(FUNCTIONS)) == PROTON.count("(")
    assert len(CONSTANTS) == len(re.findall(r"^    [A-Z_]+ = ", TEXT, re.MULTILINE))
    assert {"pn_delivery", "pn_link_send", "pn_transport_pop"} <= set(FUNCTIONS)
    assert {"NULL", "LINK_FLOW", "ACCEPTED"} <= set(CONSTANTS)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("generated_functions.py", generate.python),
        ("generated_declarations.py", generate.declarations),
        ("generated_functions.pxi", generate.cython),
    ],
)
def test_what_follows_from_the_table_was_generated_from_it(file: str, expected: Callable[[], str]) -> None:
    """If not: `python -m router.binding.generate`, and build again."""
    assert (HANDLES.parent / file).read_text(encoding="utf-8") == expected()


@pytest.mark.parametrize(
    ("in_c", "in_cython"),
    [
        ("pn_link_t pn_link_next(pn_link_t, int);", "Handle pn_link_next(Handle, int) noexcept"),
        ("bool pn_link_is_sender(pn_link_t);", "bint pn_link_is_sender(Handle) noexcept"),
        ("const char *pn_link_name(pn_link_t);", "const char *pn_link_name(Handle) noexcept"),
        ("size_t pn_delivery_pending(pn_delivery_t);", "Py_ssize_t pn_delivery_pending(Handle) noexcept"),
        ("void pn_transport_pop(pn_transport_t, size_t);", "void pn_transport_pop(Handle, size_t) noexcept"),
        ("uint64_t pn_delivery_remote_state(pn_delivery_t);", "uint64_t pn_delivery_remote_state(Handle) noexcept"),
    ],
)
def test_one_line_of_the_table_declares_a_function_to_c_and_to_cython(in_c: str, in_cython: str) -> None:
    assert in_c in PROTON.splitlines()
    assert {f"    {in_c}", f"    {in_cython}"} <= set(generate.cython().splitlines())


def test_no_function_of_proton_is_declared_anywhere_but_in_the_table() -> None:
    """What looks like a prototype in a `.pxd`, or like a look-up in a `.py`."""
    again = re.compile(r"extern .*\bpni?_\w+\(|\bpni?_\w+\([^)]*\) noexcept|= lib\.pni?_\w+$", re.MULTILINE)
    wrong = [
        str(path)
        for path in (*ROOT.rglob("*.pxd"), *ROOT.rglob("*.py"))
        if path.name not in ("cdef.py", "generated_functions.py") and again.search(path.read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants_are_those_of_proton(name: str) -> None:
    assert getattr(proton_functions, name) == CONSTANTS[name]
    assert (0 if name == "NULL" else getattr(cproton_ffi.lib, f"PN_{name}")) == CONSTANTS[name]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_visible_in_the_process(name: str) -> None:
    importlib.import_module(next(iter(hot_modules())))
    assert getattr(ctypes.CDLL(None), name)
    assert getattr(proton_functions, name) is not None


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if hasattr(cproton_ffi.lib, name)])
def test_functions_are_declared_as_proton_has_them(name: str) -> None:
    declared = proton_functions.ffi.typeof(getattr(proton_functions.lib, name))
    proton = cproton_ffi.ffi.typeof(getattr(cproton_ffi.lib, name))
    assert signature(proton_functions.ffi, declared) == signature(cproton_ffi.ffi, proton)


def test_no_call_asks_whether_python_has_raised() -> None:
    """Without `noexcept` Cython looks for an exception after each call."""
    for text in (TEXT, generate.cython()):
        declared = text.split('"""')[2].partition("cdef enum")[0]
        assert [line for line in declared.splitlines() if line.endswith(")")] == []


# Sources


@pytest.mark.parametrize("path", numbered_declarations(), ids=lambda path: path.stem)
def test_c_knows_the_same_numbers_as_python(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(ROOT.parent).with_suffix("").parts))
    numbers = numbers_of_c(path)
    assert numbers == {name: getattr(module, name) for name in numbers}


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


@pytest.mark.parametrize("module", hot_modules())
def test_variables_that_have_types_are_those_of_their_function(module: str) -> None:
    """A line of types that stands above another function leaves its own one slow, and nobody would see it."""
    sources = local_variables(module)
    wrong = {(owner, name): set(kinds) - sources[owner, name] for owner, name, kinds in typed_locals(module)}
    assert {place: names for place, names in wrong.items() if names} == {}


@pytest.mark.parametrize("module", hot_modules())
def test_no_variable_is_asked_whether_it_is_what_it_was_declared_to_be(module: str) -> None:
    """What is something else is a TypeError where it is assigned, in compiled code alone."""
    asked = asked_kinds(module)
    wrong = {(owner, name): asked[owner, name] & set(kinds.items()) for owner, name, kinds in typed_locals(module)}
    assert {place: kinds for place, kinds in wrong.items() if kinds} == {}


@attrs.frozen
class Uses:
    """Names in the code that is never compiled."""

    defined: set[str] = attrs.Factory(set)
    """Of functions, and of fields that are declared or set."""
    attributes: dict[str, str] = attrs.Factory(dict)
    """A place of each that is used,"""
    imports: dict[tuple[str, str], str] = attrs.Factory(dict)
    """and of each module and name that is imported from it."""

    def add(self, node: ast.AST, path: Path) -> None:
        """Note what *node* uses."""
        match node:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                self.defined.add(name)
            case ast.Attribute(attr=name, lineno=line):
                self.attributes.setdefault(name, f"{path}:{line}")
                if isinstance(node.ctx, ast.Store):
                    self.defined.add(name)
            case ast.ImportFrom(module=str(module), lineno=line):
                for alias in node.names:
                    self.imports.setdefault((module, alias.name), f"{path}:{line}")


@cache
def uses() -> Uses:
    """What the sources use that are never compiled, and the tests."""
    found = Uses()
    hot = set(hot_modules().values())
    tests = Path(__file__).parents[1]
    for path in (*ROOT.rglob("*.py"), *tests.rglob("*.py")):
        if path not in hot:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                found.add(node, path)
    return found


def names_of_others() -> Iterator[str]:
    """What is called by the same name in another class, or in a syntax tree."""
    yield from ast.Assign._fields
    for declared in CLASSES.values():
        yield from (*declared.visible, *declared.visible_methods)
    yield from uses().defined


def test_interpreted_code_uses_nothing_that_only_compiled_code_has() -> None:
    hidden = {name for declared in CLASSES.values() for name in (*declared.hidden, *declared.hidden_methods)}
    hidden -= set(names_of_others())
    wrong = [f"{place}: .{name}" for name, place in uses().attributes.items() if name in hidden]
    assert not wrong, "\n".join(wrong)


def test_interpreted_code_imports_nothing_that_only_compiled_code_has() -> None:
    hidden = set(hidden_functions())
    wrong = [
        f"{place}: {module}.{name}"
        for (module, name), place in uses().imports.items()
        if (module, name) in hidden or (module in hot_modules() and not hasattr(importlib.import_module(module), name))
    ]
    assert not wrong, "\n".join(wrong)
