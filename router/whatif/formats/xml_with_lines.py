"""XML to elements that know their line, names without their namespaces. Entities are refused."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from lxml import etree

from router.whatif.formats.input_file import FileFindings

MAX_ELEMENTS: Final = 5_000_000

Element: TypeAlias = etree._Element
"""Element of an XML tree, with `tag`, `sourceline`, `get`, `find` and `iterchildren`."""

_OPTIONS: Final[dict[str, Any]] = {
    "encoding": "utf-8",  # whatever the document declares: it was decoded already
    "resolve_entities": False,
    "load_dtd": False,
    "no_network": True,
    "huge_tree": False,  # libxml2 bounds depth, texts, and what entities in attributes grow to
    "remove_comments": True,
    "remove_pis": True,
}


def read(text: str, faults: FileFindings) -> Element:
    """The root element of *text*. Raises: SettingsError."""
    try:
        root = etree.fromstring(text.encode(), etree.XMLParser(**_OPTIONS))
    except etree.XMLSyntaxError as error:
        # Behind these words: the place once more, and advice to programmers.
        message = error.msg.partition(", line ")[0].partition(", use ")[0].partition(", see ")[0].strip()
        faults.fail(f"not readable as XML: {message}", line=max(error.lineno or 1, 1))
    dtd = root.getroottree().docinfo.internalDTD
    if dtd is not None and any(dtd.iterentities()):
        line = text.count("\n", 0, text.find("<!ENTITY")) + 1
        faults.fail("an entity is declared", line=line, expected="none")
    for count, element in enumerate(root.iter("*")):
        if count == MAX_ELEMENTS:
            faults.fail("too many elements", line=element.sourceline, expected=f"at most {MAX_ELEMENTS}")
        element.tag = element.tag.rpartition("}")[2]
    return root


def text_of(element: Element) -> str:
    """Text of an element before any other, without blanks around."""
    return (element.text or "").strip()
