"""One file, and what goes with it, to a model: the reader is chosen by what the file is."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from mesh_config.findings import Finding, SettingsError, Severity, nearest
from mesh_config.yaml_text import Place
from router.whatif.formats import graphml, json_with_lines, repetita, sndlib, topohub, xml_with_lines
from router.whatif.formats.demand_file import with_demand_file
from router.whatif.formats.details_file import DefaultedFields, is_details, with_details
from router.whatif.formats.input_file import FileFindings, FilePath, in_file, read_text
from router.whatif.formats.mesh_settings import TreatmentOf, built_in_treatment, read_mesh
from router.whatif.formats.topology_builder import MESSAGE_BYTES
from router.whatif.model.connected_components import ConnectedComponents
from router.whatif.model.elements import Group, LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model, ModelError
from router.whatif.wording import parted


class Form(enum.StrEnum):
    """Format of a file."""

    MESH = "mesh"
    GRAPHML = "graphml"
    TOPOHUB = "topohub"
    SNDLIB = "sndlib"
    REPETITA = "repetita"


BY_SUFFIX = {
    ".yaml": Form.MESH,
    ".yml": Form.MESH,
    ".graphml": Form.GRAPHML,
    ".json": Form.TOPOHUB,
    ".graph": Form.REPETITA,
}
"""Other files are looked into."""
WORDS = {
    Form.MESH: "YAML, as `amqp-mesh run` takes it",
    Form.GRAPHML: "XML, as the Topology Zoo has it",
    Form.TOPOHUB: "JSON",
    Form.SNDLIB: "its own text, or XML",
    Form.REPETITA: "text, a .graph file; its .demands by --demands",
}
"""Files of each format, in words."""
_KEY = re.compile(r"^[\w\"'-]+\s*:", re.MULTILINE)
"""Every mesh file has one."""


def import_model(
    file: FilePath,
    *,
    form: Form | str | None = None,
    details: FilePath | Sequence[FilePath] = (),
    demands: FilePath | None = None,
    message_bytes: float = MESSAGE_BYTES,
) -> tuple[Model, tuple[Finding, ...]]:
    """The model of a file.

    Args:
        file: its path.
        form: what the file is; by default found out.
        details: files of groups, failure rates, subscribers, in order: a later one overrules those before it; or one
            such file.
        demands: a table that takes the place of the demands that the file has itself.
        message_bytes: size of a message where the file gives traffic without one.
    Returns: the model, checked; warnings.
    Raises: SettingsError with all that is wrong with the first file that can't be used.
    """
    faults = FileFindings(file)
    details = [details] if isinstance(details, str | os.PathLike) else list(details)
    model, treatment_of, nodes = _read(faults, _named(form) or _form(file, faults), message_bytes)
    try:
        model.check()
    except ModelError as error:
        raise ModelError(in_file(error.findings, file)) from error
    table = None if demands is None or repetita.is_demands(demands) else demands
    model, warnings = completed(model, details=details, demands=table, treatment_of=treatment_of)
    if demands is not None and table is None:
        model, more = repetita.with_repetita_demands(model, demands, nodes, message_bytes=message_bytes)
        warnings += more
    origin = " + ".join(Path(path).name for path in (file, *details, *(() if demands is None else (demands,))))
    return attrs.evolve(model, origin=origin), (
        *faults.check(),
        *warnings,
        *parts_warning(model, file),
        *rates_warnings(model, file),
    )


def completed(
    model: Model,
    *,
    details: Sequence[FilePath],
    demands: FilePath | None,
    treatment_of: TreatmentOf = built_in_treatment,
) -> tuple[Model, tuple[Finding, ...]]:
    """The model with what operators say of it, and with the demands of a table; see `import_model`.

    Args:
        model: of a mesh or topology.
        details: files of groups, failure rates, subscribers, in order.
        demands: path of the table; None: those of the model stay.
        treatment_of: of addresses that neither the model nor the details have.
    """
    defaulted: DefaultedFields = set()
    for path in details:
        model = with_details(model, path, treatment_of, defaulted)
    return (model, ()) if demands is None else with_demand_file(model, demands, treatment_of)


def parts_warning(model: Model, file: FilePath | None) -> tuple[Finding, ...]:
    """A warning if the mesh is in several parts even when nothing fails.

    Args:
        model: with all its links.
        file: or folder that the warning names; None: none.
    """
    found = ConnectedComponents.of(model)
    said = parted(found.parts, found.apart_pairs)
    place = None if file is None else os.fspath(file)
    return (Finding(severity=Severity.WARNING, file=place, message=said),) if said else ()


def rates_warnings(model: Model, file: FilePath | None) -> tuple[Finding, ...]:
    """Warnings of what has one of `failures_per_year` and `repair_hours` alone, so that it counts as never failing.

    Args:
        model: with the rates of all its parts.
        file: that the warnings name; None: none.
    """
    place = None if file is None else os.fspath(file)
    kinds: tuple[tuple[str, Iterable[RouterNode | LinkEdge | Group]], ...] = (
        ("router", model.routers),
        ("link", model.links),
        ("group", model.groups),
    )
    found = []
    for kind, parts in kinds:
        for there, missing in (("failures_per_year", "repair_hours"), ("repair_hours", "failures_per_year")):
            halves = [it for it in parts if getattr(it, there) is not None and getattr(it, missing) is None]
            if halves:
                first = halves[0].name if isinstance(halves[0], Group) else halves[0].id
                more = f", and so do {len(halves) - 1:,} more" if len(halves) > 1 else ""
                said = f"{kind} `{first}` has `{there}` without `{missing}`: it counts as never failing{more}"
                found.append(Finding(severity=Severity.WARNING, file=place, message=said))
    return tuple(found)


def _named(form: Form | str | None) -> Form | None:
    """Raises: SettingsError for a word that is no format."""
    if form is None:
        return None
    found = next((each for each in Form if each == form), None)
    if found is None:
        place = Place(file=None, line=None, path=("form",))
        near = nearest(str(form), list(Form))
        raise SettingsError([place.finding(f"`{form}`", expected=f"one of {', '.join(Form)}", nearest=near)])
    return found


def _form(file: FilePath, faults: FileFindings) -> Form:
    """Recognize the format of a file, by the end of its name, or else by its first characters.

    Raises: SettingsError when it looks like none of them.
    """
    found = BY_SUFFIX.get(Path(file).suffix.lower())
    if found is not None:
        return found
    faults.need_regular()
    text = read_text(file)
    start = text.lstrip()[:4096]
    if repetita.HEAD.match(start) is not None:
        return Form.REPETITA
    if start.startswith("?") or "sndlib" in start.casefold():
        return Form.SNDLIB
    if start.startswith("<"):
        return Form.GRAPHML
    if start.startswith("{"):
        return Form.TOPOHUB
    if text.strip() and _KEY.search(text) is None:
        formats = ", ".join(f"{form} ({words})" for form, words in WORDS.items())
        faults.fail("its format is not recognized", expected=f"one of {formats}; --format says which")
    return Form.MESH


def _read(faults: FileFindings, form: Form, message_bytes: float) -> tuple[Model, TreatmentOf, tuple[str, ...]]:
    """The model; treatments of addresses; ids of routers where demands number them."""
    nodes: tuple[str, ...] = ()
    if form is Form.MESH:
        faults.need_regular()
        if is_details(faults.file):
            message = "details of a mesh, such as groups and subscribers"
            faults.fail(message, expected="a mesh or topology; give this file by --details")
        return *read_mesh(faults.file, faults), nodes
    text, name = read_text(faults.file), Path(os.fspath(faults.file)).stem
    if form is Form.TOPOHUB:
        found = topohub.read_topohub(json_with_lines.read(text, faults), faults, message_bytes=message_bytes)
    elif form is Form.GRAPHML:
        found = graphml.read_graphml(xml_with_lines.read(text, faults), faults)
    elif form is Form.REPETITA:
        found, nodes = repetita.read_repetita(text, faults, name=name)
    elif text.lstrip().startswith("<"):
        found = sndlib.read_xml(xml_with_lines.read(text, faults), faults, name=name, message_bytes=message_bytes)
    else:
        found = sndlib.read_native(text, faults, name=name, message_bytes=message_bytes)
    return found, built_in_treatment, nodes
