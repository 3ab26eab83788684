"""YAML text to values that know their line, and back. The one file that knows the YAML reader.

Scalars follow the core schema of YAML 1.2: `yes`, `on` and `12:30` are text, as an operator expects of a router's id.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import yaml

from mesh_config.findings import Finding, Severity, Step, key_path

Scalar = str | int | float | bool | None

_MAX_DEPTH = 100
_TAG = "tag:yaml.org,2002:"
_PYTHON_READER = (yaml.SafeLoader, yaml.SafeDumper)
_Loader: Any = getattr(yaml, "CSafeLoader", _PYTHON_READER[0])  # ten times as fast, but not in every build
_Dumper: Any = getattr(yaml, "CSafeDumper", _PYTHON_READER[1])

_RESOLVERS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
)

_BREAK = re.compile("\r\n|[\r\n\x85\u2028\u2029]")
"""End of a line of YAML."""
_QPID_DISPATCH = re.compile(
    r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*"
    r"(?P<section>router|listener|connector|address|log|policy|vhost|sslProfile|linkRoute|autoLink|authServicePlugin"
    r"|console|container|fixedAddress|tcpListener|tcpConnector|httpListener|httpConnector)[ \t]*\{"
)
"""Beginning of a file of Qpid Dispatch below its comments, a section and its brace: no file of ours begins so."""


@attrs.frozen(kw_only=True)
class Place:
    """Place in a file."""

    file: str | None
    line: int | None
    """Counted from 1."""
    path: tuple[Step, ...]

    def finding(
        self,
        message: str,
        *,
        expected: str = "",
        nearest: str | None = None,
        severity: Severity = Severity.ERROR,
        at: tuple[Step, ...] = (),
    ) -> Finding:
        """A finding about this place, or about what is (or should be) *at* some steps below it."""
        return Finding(
            severity=severity,
            file=self.file,
            line=self.line,
            key=key_path(self.path + at),
            message=message,
            expected=expected,
            nearest=nearest,
        )


@attrs.frozen(kw_only=True)
class ScalarNode:
    """A single value."""

    place: Place
    value: Scalar


@attrs.frozen(kw_only=True)
class ListNode:
    """Values in order."""

    place: Place
    items: tuple[Node, ...]


@attrs.frozen(kw_only=True)
class MapNode:
    """Values by key; `key_places` has the lines of the keys, which may be above those of the values."""

    place: Place
    items: Mapping[str, Node]
    key_places: Mapping[str, Place]


Node = ScalarNode | ListNode | MapNode


class _CoreLoader(_Loader):  # type: ignore[misc]
    """Reader with the core schema's idea of a plain scalar."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (as in PyYAML)


class _CoreDumper(_Dumper):  # type: ignore[misc]
    """Writer of the same; text that a reader of YAML 1.1 or 1.2 could take for something else is put in quotes."""

    def ignore_aliases(self, data: object) -> bool:
        """Write everything out: equal settings are not the same thing to an operator."""
        return True


def _represent_text(dumper: Any, text: str) -> Any:
    is_ambiguous = any(re.fullmatch(pattern, text) for _, pattern, _ in _RESOLVERS)
    return dumper.represent_scalar(_TAG + "str", text, style="'" if is_ambiguous else None)


for _name, _pattern, _first in _RESOLVERS:
    for _character in _first.replace("\0", ""):
        _CoreLoader.yaml_implicit_resolvers.setdefault(_character, []).append(
            (_TAG + _name, re.compile(f"(?:{_pattern})$"))
        )
_CoreLoader.yaml_implicit_resolvers[""] = [(_TAG + "null", re.compile("$"))]
_CoreDumper.add_representer(str, _represent_text)


def read(
    text: str, file: str | None, *, expected: str = "`router` or `routers`"
) -> tuple[Node | None, tuple[Finding, ...]]:
    """The one document of *text*, and what is wrong with it as YAML.

    Of a duplicate key the first value is kept, so that the rest of the file can still be looked at.

    Args:
        text: of the file.
        file: its name.
        expected: in the place of nothing at all.
    Returns: the root, or None when there is none; findings.
    """
    start = Place(file=file, line=1, path=())
    if (foreign := _QPID_DISPATCH.match(text)) is not None:
        line = len(_BREAK.findall(text, 0, foreign.start("section"))) + 1
        message = f"`{foreign['section']} {{`: a configuration of Qpid Dispatch (qdrouterd.conf)"
        replace = f"{expected} in YAML: docs/how_to/replace-qdrouterd.md has the settings for its own"
        return None, (attrs.evolve(start, line=line).finding(message, expected=replace),)
    try:
        too_deep = _first_line_too_deep(text)
        if too_deep is not None:
            place = attrs.evolve(start, line=too_deep)
            return None, (place.finding("nested too deep", expected=f"at most {_MAX_DEPTH} levels"),)
        root = yaml.compose(text, Loader=_CoreLoader)
    except yaml.MarkedYAMLError as error:
        return None, (_syntax_finding(error, start, text),)
    except yaml.YAMLError:
        return None, (_unreadable_character(text, start),)
    if root is None:
        return None, (start.finding("the file is empty", expected=expected),)
    conversion = _Conversion(file, last_line=_last_line(text))
    node = conversion.node(root, (), 1)
    return node, tuple(conversion.findings)


def _unreadable_character(text: str, start: Place) -> Finding:
    """The one complaint of the reader that has no line: of a character that YAML doesn't know."""
    found = yaml.reader.Reader.NON_PRINTABLE.search(text)
    assert found is not None, "what has no mark is about a character"
    line = len(_BREAK.findall(text, 0, found.start())) + 1
    escape = found[0].encode("unicode_escape").decode()
    message = f"not readable as YAML: the character {escape}"
    return attrs.evolve(start, line=line).finding(message, expected=f'none, or its escape in quotes: `"{escape}"`')


def write(value: object) -> str:
    """*value* (mappings, lists, scalars) as YAML text that `read` gives back; order of keys is kept."""
    text: str = yaml.dump(value, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, width=110, indent=2)
    return text


def plain(node: Node) -> object:
    """The values of *node* without their places: dicts, lists and scalars."""
    match node:
        case MapNode():
            return {key: plain(item) for key, item in node.items.items()}
        case ListNode():
            return [plain(item) for item in node.items]
        case ScalarNode():
            return node.value


def with_number(text: str, path: Sequence[Step], number: int) -> str:
    """The text with a number at a path, and all else as it was: comments, order and style.

    Args:
        text: that `read` takes without findings.
        path: keys of mappings and places in lists; the last one is a key, which may be missing.
        number: to be written there.
    Raises: KeyError when what is above it isn't there, or is no mapping.
    """
    # Not the C reader, whose marks count bytes in some builds.
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    for step in path[:-1]:
        node = _below(node, step)
    if not isinstance(node, yaml.MappingNode) or not node.value:
        raise KeyError(path[-1])
    for key, value in node.value:
        if key.value == path[-1]:
            return f"{text[: value.start_mark.index]}{number}{text[value.end_mark.index :]}"
    first = node.value[0][0].start_mark
    if node.flow_style:
        return f"{text[: first.index]}{path[-1]}: {number}, {text[first.index :]}"
    return f"{text[: first.index]}{path[-1]}: {number}\n{' ' * first.column}{text[first.index :]}"


def _below(node: Any, step: Step) -> Any:
    """The node at a step below one. Raises: KeyError when it is neither mapping nor list."""
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    raise KeyError(step)


def _first_line_too_deep(text: str) -> int | None:
    """The line where mappings and lists are nested too deep: the C reader's composer recurses, and would overflow."""
    depth = 0
    for event in yaml.parse(text, Loader=_CoreLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _MAX_DEPTH:
                return event.start_mark.line + 1 if event.start_mark else 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
    return None


def _last_line(text: str) -> int:
    """The reader tells of the line behind it what ends too early, and what is left out at the end."""
    return len(_BREAK.findall(text)) + 1


_EXPECTED: Final[Sequence[tuple[str, str]]] = (
    ("found a tab", "blanks instead of the tab"),
    ("cannot start any token", "quotes around a text that begins so"),
    ("mapping values are not allowed", "the indentation of the keys beside it, or quotes around a text that has `: `"),
    ("could not find expected ':'", "`: ` after a key"),
    ("expected ',' or '}'", "`,` or `}}`, since the `{{` of line {opened} is open"),
    ("expected ',' or ']'", "`,` or `]`, since the `[` of line {opened} is open"),
    ("unexpected end of stream", "the other quote of the text that begins in line {opened}"),
    ("expected '-' indicator", "`- ` at the indentation of the items beside it"),
    ("did not find expected key", "a key at the indentation of those beside it"),
    ("did not find expected <document start>", "the indentation of the keys above"),
    ("found another document", "no `---`"),
)
"""Parts of what the reader says of a file's form, and what was expected there; *opened*: line where that began."""


def _syntax_finding(error: yaml.MarkedYAMLError, start: Place, text: str) -> Finding:
    mark = error.problem_mark or error.context_mark
    words = ", ".join(word for word in (error.context, error.problem) if word)
    if mark is None:
        return start.finding(f"not readable as YAML: {words}")
    opened = error.context_mark.line + 1 if error.context_mark is not None else mark.line + 1
    expected = next((missed for said, missed in _EXPECTED if said in words), "").format(opened=opened)
    lines = _BREAK.split(text)
    if mark.line < len(lines) and lines[mark.line][mark.column : mark.column + 1] == "\t":
        expected = _EXPECTED[0][1]
    # A key without its colon is noticed in the next line.
    line = opened if "simple key" in words else mark.line + 1
    place = attrs.evolve(start, line=min(line, _last_line(text)))
    return place.finding(f"not readable as YAML: {words}", expected=expected)


class _Conversion:
    """One pass over the reader's nodes."""

    def __init__(self, file: str | None, last_line: int) -> None:
        self.findings: list[Finding] = []
        self._file = file
        self._last_line = last_line
        self._seen: set[int] = set()

    def node(self, raw: yaml.Node, path: tuple[Step, ...], line: int) -> Node:
        """Convert *raw*; *line* is that of its key or list."""
        place = Place(file=self._file, line=min(raw.start_mark.line + 1, self._last_line), path=path)
        # The reader gives the very same node for an alias. Aliases are refused: a few of them blow up to gigabytes, and
        # the place of what they stand for is not where the operator would look for it.
        if id(raw) in self._seen:
            place = attrs.evolve(place, line=line)
            self.findings.append(place.finding("an alias (`*name`)", expected="the value itself, or `defaults`"))
            return ScalarNode(place=place, value=None)
        self._seen.add(id(raw))
        if isinstance(raw, yaml.MappingNode):
            return self._mapping(raw, place)
        if isinstance(raw, yaml.SequenceNode):
            return ListNode(
                place=place,
                items=tuple(
                    self.node(item, (*path, index), place.line or line) for index, item in enumerate(raw.value)
                ),
            )
        return ScalarNode(place=place, value=self._scalar(raw, place))

    def _mapping(self, raw: yaml.MappingNode, place: Place) -> MapNode:
        items: dict[str, Node] = {}
        key_places: dict[str, Place] = {}
        for key_node, value_node in raw.value:
            line = key_node.start_mark.line + 1
            key_place = Place(file=self._file, line=line, path=(*place.path, str(key_node.value)))
            if not isinstance(key_node, yaml.ScalarNode):
                bad_place = attrs.evolve(place, line=line)
                self.findings.append(bad_place.finding("a mapping or a list as a key", expected="a word"))
                continue
            key = str(key_node.value)
            if key in items:
                first = key_places[key].line
                self.findings.append(
                    key_place.finding(f"key `{key}` is given twice, first in line {first}", expected="each key once")
                )
                continue
            value = self.node(value_node, key_place.path, line)
            # What is said about a mapping or a list as a whole belongs to the line that names it.
            items[key] = value if isinstance(value, ScalarNode) else attrs.evolve(value, place=key_place)
            key_places[key] = key_place
        return MapNode(place=place, items=items, key_places=key_places)

    def _scalar(self, raw: yaml.Node, place: Place) -> Scalar:
        text = str(raw.value)
        kind = raw.tag.removeprefix(_TAG)
        try:
            if kind == "null":
                return None
            if kind == "bool" and text.lower() in ("true", "false"):
                return text.lower() == "true"
            if kind == "int":
                return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
            if kind == "float":
                return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
            if kind == "str":
                return text
        except ValueError:
            if kind == "int" and 0 < sys.get_int_max_str_digits() < len(text):
                self.findings.append(
                    place.finding(f"a number of {len(text):,} characters", expected="one in its range")
                )
                return None
        self.findings.append(place.finding(f"a value with the tag `{raw.tag}`", expected="a plain value"))
        return None
