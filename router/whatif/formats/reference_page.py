"""The page about the files that models are made of and kept in: `docs/reference/whatif-files.md`."""

from __future__ import annotations

import enum
import sys
from pathlib import Path
from typing import Any

import attrs

from mesh_config.structuring import default_of
from mesh_config.value_rules import SettingsClass, fields_of, kind_of
from router.whatif.formats import details_file
from router.whatif.formats.demand_file import COLUMNS
from router.whatif.formats.model_folder import PARTS
from router.whatif.model.demands import Demand

_INTRO = """\
# Files of what-if

<!-- Made from the program by `python -m router.whatif.formats.reference_page`; changes belong there. -->

`amqp-mesh whatif import FILE -o MODEL` makes a model of a file, `amqp-mesh whatif snapshot URL -o MODEL` of a live
mesh. Either takes a table of demands (`--demands`) and files of details (`--details`). All that is wrong with a file is
told at once, with its line or row, and nothing is written then:

```text
demands.csv:7: error: src: no router `r9`, in 2 rows; expected a router of the model; did you mean `R9`?
```

## What import reads

What a file is, the end of its name says, or else what it begins with; `--format` goes first.

- `.yaml`: the [settings of a mesh](settings.md). Routers have their `site`; each connector that reaches a listener for
  other routers is a link, with the larger cost of both ends.
- `.graphml`, as the Topology Zoo has it. A node has `label`, `Latitude` and `Longitude`, an edge `LinkSpeedRaw`
  (bits/s), which is the capacity. The fields of [routers](#routers) and [links](#links) may stand there too, under
  their names.
- `.json`, as TopoHub has it: the node-link form of networkx. A node has `id`, `name` and `pos` (longitude, latitude),
  an edge `source`, `target` and `dist` (km). `graph.demands` has traffic, as much in each direction.
- SNDlib's networks, text or XML. What is installed already is the capacity in messages/s; value times routing unit is
  the traffic in each direction.
- `.graph`, as REPETITA has it, whose `.demands` goes with `--demands`. Bandwidths are kbit/s and delays microseconds;
  two edges in opposite directions are a link, traffic has one direction.

What all have in common:

- **Ids** of routers are labels, with `-` in place of blanks and `/`. Where several nodes have the same label the node's
  key follows (`Athens-112`); a node without a label is called by its key (`n7`).
- **Links** are called `a--b`, the smaller router id first. Of parallel ones the cheapest, which the mesh uses, has this
  name; then come `a--b#2` and so on.
- **Costs** are 1 where a file has none. Costs of SNDlib are those of building, and not used. Where they differ by
  direction, as in some of REPETITA's files, only `run --routing ecmp` plays the model: a mesh uses the larger one for
  both.
- **Delays** are those of straight fibre, 200 km for each millisecond: by `dist`, or between the coordinates of both
  ends. Where coordinates are out of the range of degrees no node of the file has any.
- **Traffic** of TopoHub and SNDlib is taken for messages/s, each of as many bytes as `--message-bytes` says; that of
  REPETITA, in kbit/s, is divided into messages of that size.
- Edges from a node to itself are left out, with a warning; edges with a direction are refused, and so are XML entities.
- A file may have 64 MiB.

## What a snapshot has

Any one router leads to all others, over [management](management.md):

- the routers that can be reached, and their sites;
- links, standby connections included: the larger cost of both ends, half of TCP's shortest round trip as the delay, and
  counters of messages and bytes, what management and the control plane send included;
- addresses with subscribers or publishers, and their treatment; those of replies are left out;
- subscribers, and the credit that they grant when nothing is under way;
- with `--measure SECONDS` demands: what enters the mesh at each router for each address meanwhile. Sizes are the mean
  of what that router's clients send.
"""

_DEMANDS = """\
## Demands

CSV, in UTF-8 with commas, or Parquet (`.parquet`), with a row for each demand. They take the place of those that the
file itself has. A row has either `dst` or `address`; the column of the other may be absent, and so may `class`. A row
from a router to itself is left out when it has no messages. At most 20 million rows, and 2 GiB.

```text
src,dst,address,msgs_per_s,msg_bytes,class
R1,R3,,250,1200,rpc
R2,,orders,40.5,800,
```
"""

_DETAILS = """\
## Groups, failure rates, subscribers

YAML, for `--details` (`--groups` is its older name); each key may be absent. The option may be given several times: the
files are read in the order in which they stand there, and where two say different things of the same router, link,
address, subscriber or group, what the second one says holds.

Addresses of subscribers that are not listed have the treatment that the mesh's settings give them. Addresses,
subscribers and groups have the fields that stand below under these names. `new_links` are those that are planned: each
gets the next usual id, here `R1--R4`, under which groups and later files may name it. A link without failure rates
never fails. A new link without `delay_ms` gets the delay of straight fibre when both its ends have coordinates; one of
`run --add-link` without it has none that is known, which counts as 0.

`defaults` give a value to every router and link of which nothing else says it. They replace the defaults of an earlier
file. They do not replace what the topology itself, or `routers`, `links` or `new_links` of any file, say of one router
or link. They are for what is there when the file is read, with the new links of this file: links that a later file
adds say their own.

```yaml
defaults:
  link: {failures_per_year: 2, repair_hours: 4, capacity_bytes: 1.25e8}
  router: {failures_per_year: 0.5, repair_hours: 6}
routers: [{id: R1, site: east}]
links: [{id: R1--R2, delay_ms: 3.5}]
new_links: [{a: R1, b: R4, cost: 2}]
addresses:
  - {text: orders, treatment: closest}
subscribers:
  - {address: orders, router: R3, count: 2, credit: 200, service_ms: 5}
groups:
  - {name: duct 7, kind: srlg, links: [R1--R2, R1--R4]}
  - {name: sunday, kind: maintenance, routers: [R2]}
```
"""

_MODEL = """\
## A model

A folder: `model.json`, which has format, name, origin and the SHA-256 of what the model is, and a Parquet file for
each part. It appears whole or not at all, and takes the place of a model that is there already, of nothing else.
`demands.parquet` has the columns above. Equal meshes are equal models with equal digests, whatever they were made of.
"""

_WORDS = {str: "text", int: "whole number", float: "number"}


def reference_text() -> str:
    """The page."""
    parts = [_INTRO, _DEMANDS, _table(Demand, {"klass": "class"}), _DETAILS]
    parts += [
        _section(f"`defaults.{field.name}`", kind_of(field.type).base) for field in fields_of(details_file.Defaults)
    ]
    parts += [
        _section(f"`{key}` of a file of details", cls)
        for key, cls in details_file.LISTS.items()
        if cls not in PARTS.values()
    ]
    parts.append(_MODEL)
    parts += [_section(key.capitalize(), cls) for key, cls in PARTS.items()]
    return "\n".join(parts)


def _section(title: str, cls: SettingsClass) -> str:
    return f"### {title}\n\n{_table(cls, {})}"


def _table(cls: SettingsClass, names: dict[str, str]) -> str:
    head = ["| field | type | default | range | unit | meaning |", "|---|---|---|---|---|---|"]
    return "\n".join([*head, *(_row(field, names.get(field.name, field.name)) for field in fields_of(cls)), ""])


def _row(field: attrs.Attribute[Any], name: str) -> str:
    low, high = field.metadata["low"], field.metadata["high"]
    default = default_of(field)
    cells = (
        f"`{name}`",
        _type(field),
        "required" if default is attrs.NOTHING else "none" if default in (None, ()) else f"`{default}`",
        "" if low is None else f"{low} to {high}",
        str(field.metadata["unit"]),
        str(field.metadata["doc"]),
    )
    return f"| {' | '.join(cells)} |"


def _type(field: attrs.Attribute[Any]) -> str:
    kind = kind_of(field.type)
    name = ", ".join(f"`{it.value}`" for it in kind.base) if issubclass(kind.base, enum.Enum) else _WORDS[kind.base]
    return f"list of {name}" if kind.is_list else name


assert set(COLUMNS) == {"class" if field.name == "klass" else field.name for field in fields_of(Demand)}

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference_text(), encoding="utf-8")
