"""The pictures of a report. Each is bounded in size, whatever the size of the mesh and of the run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.whatif.model.mesh_model import Model
from router.whatif.report.interactive_mesh_overlay import mesh_elements
from router.whatif.report.router_names import FONT, name_places
from router.whatif.report.router_positions import positions
from router.whatif.report.run_facts import Facts, LinkFacts, Row, VariantFacts
from router.whatif.report.single_failures import STEPS
from router.whatif.report.themed_matplotlib_svg import (
    BAD,
    FAINT,
    INK,
    ONE,
    PAPER,
    STAND_INS,
    THREE,
    TWO,
    CaptionedPicture,
    figure,
    svg_of,
)
from router.whatif.wording import BASE, amount, counted, percent

WIDTH: Final = 460
"""Pixels of a picture that has another one beside it."""
WIDE: Final = 940
NEAR: Final = 85
"""Percent from which on the line of what is full is drawn beside the links."""
BARS: Final = 20
"""Links with bars of their own."""
NAMED: Final = 60
"""Routers of a mesh in which each has its name in the picture; in a larger one only what is critical has."""
MOST_NAMES: Final = 25

CLASSES: Final = ("up to 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 100 %", "above 100 %")
CLASS_COLORS: Final = tuple(STAND_INS[f"load-{at}"] for at in range(len(CLASSES)))
CLASS_WIDTHS: Final = (1.0, 1.5, 2.1, 2.8, 3.6, 4.6)
"""Pixels; wider ones tell what colors tell, to those who do not see them."""

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def pictures(facts: Facts) -> list[CaptionedPicture]:
    """All that have something to show."""
    return [
        picture
        for picture in (topology(facts), loads(facts), losses(facts), stretches(facts), growth(facts))
        if picture is not None
    ]


# The mesh


def topology(facts: Facts) -> CaptionedPicture:
    """The mesh on a map, links by their worst utilisation, single points of failure marked."""
    cut_routers = {row["element"] for row in facts.spof if row["kind"] == "router"}
    cut_links = {row["element"] for row in facts.spof if row["kind"] == "link"}
    worst = {link.link: link.worst_utilisation for link in facts.links}
    title = "The mesh: how full each link gets in its worst case"
    svg = draw_mesh(
        facts.model,
        title,
        worst=worst,
        marked_routers=cut_routers,
        marked_links=cut_links,
        has_legend=False,
        has_elements=bool(facts.single_failures),
    )
    marks = ""
    if facts.spof:
        marks = (
            " Red rings are routers, and dotted red lines links, that are single points of failure: when one of them"
            " fails, others lose a path or a subscriber."
        )
    used = sorted({class_of(utilisation) for utilisation in worst.values()})
    return CaptionedPicture(
        name="mesh",
        title=title,
        caption=(
            "The worst case of a link is the scenario in which it is fullest. Color and width say how full it is then,"
            f" in {_percent_of(facts)}.{marks}"
        ),
        svg=svg,
        is_wide=True,
        legend=tuple((f"load-{at}", CLASS_WIDTHS[at], CLASSES[at]) for at in used),
    )


def _percent_of(facts: Facts) -> str:
    """Words for what 100 % is."""
    return (
        "percent of its capacity" if facts.has_capacities else "percent of what the busiest link has when nothing fails"
    )


def draw_mesh(
    model: Model,
    title: str,
    *,
    worst: Mapping[str, float] | None = None,
    marked_routers: Set[str] = frozenset(),
    marked_links: Set[str] = frozenset(),
    failed_routers: Set[str] = frozenset(),
    failed_links: Set[str] = frozenset(),
    path: Sequence[str] = (),
    old_path: Sequence[str] = (),
    name: str = "mesh",
    has_legend: bool = True,
    marks_are_spof: bool = True,
    has_elements: bool = False,
) -> str:
    """A mesh as SVG.

    Args:
        model: the mesh.
        title: is read out by programs for the blind.
        worst: utilisation by link, 1 being all that it can carry; links that are not in it are thin.
        marked_routers: set off from the others.
        marked_links: the same of links.
        failed_routers: drawn as gone.
        failed_links: the same of links.
        path: links that are drawn over the others, as one way.
        old_path: the same, as a way that is not taken any more.
        name: of the picture, by which its ids differ from those of others in a page.
        has_legend: say what the colours mean.
        marks_are_spof: whether what is marked is called a single point of failure.
        has_elements: whether links and routers are elements of their own too, see `mesh_elements`.
    """
    points = positions(model)
    place = {router.id: at for at, router in enumerate(model.routers)}
    spread = np.ptp(points, axis=0) if len(points) else np.ones(2)
    # The picture has the shape of the mesh, within bounds.
    height = WIDE * min(0.72, max(0.4, float(spread[1]) / max(float(spread[0]), 1e-9)))
    below = 30 if has_legend else 0
    with figure(WIDE, height + below) as made:
        axes = made.add_axes((0.01, 0.01 + below / (height + below), 0.98, 0.98 - below / (height + below)))
        axes.set_axis_off()
        axes.set_aspect("equal", adjustable="datalim")
        axes.margins(0.03)
        segments = {link.id: points[[place[link.a], place[link.b]]] for link in model.links}
        word = "single point of failure" if marks_are_spof else "this"
        _mark_links(axes, [segments[link] for link in sorted(marked_links & segments.keys())], word)
        gone = {link.id for link in model.links if link.id in failed_links or {link.a, link.b} & failed_routers}
        _draw_links(axes, segments, worst or {}, gone)
        _draw_way(axes, [segments[link] for link in old_path if link in segments], FAINT, (2, 2), "before")
        _draw_way(axes, [segments[link] for link in path if link in segments], ONE, None, "path")
        _draw_routers(axes, points, place, marked_routers, failed_routers)
        shown = failed_links | marked_links | set(path)
        ends = {end for link in model.links if link.id in shown for end in (link.a, link.b)}
        _name_routers(axes, points, place, [marked_routers | failed_routers, ends], segments, gone)
        if has_legend:
            handles, labels = axes.get_legend_handles_labels()
            made.legend(handles, labels, loc="lower left", ncols=8, columnspacing=1.2, handlelength=1.4)
        over = mesh_elements(axes, height + below, points, model) if has_elements else ""
        return f"{svg_of(made, name, title).removesuffix('</svg>')}{over}</svg>"


def _joined(segments: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Many lines as one, with gaps: one path in the file instead of thousands."""
    gap = np.full((1, 2), np.nan)
    return np.concatenate([part for segment in segments for part in (segment, gap)]) if segments else gap


def _draw_links(
    axes: Any,
    segments: Mapping[str, NDArray[np.float64]],
    worst: Mapping[str, float],
    gone: Set[str],
) -> None:
    thin = [segment for link, segment in segments.items() if link not in worst and link not in gone]
    if thin:
        axes.plot(*_joined(thin).T, color=FAINT, linewidth=1.0, solid_capstyle="round")
    of_class: dict[int, list[NDArray[np.float64]]] = {}
    for link, utilisation in worst.items():
        if link in segments and link not in gone:
            of_class.setdefault(class_of(utilisation), []).append(segments[link])
    for at in sorted(of_class):
        style = {"color": CLASS_COLORS[at], "linewidth": CLASS_WIDTHS[at], "solid_capstyle": "round"}
        axes.plot(*_joined(of_class[at]).T, label=CLASSES[at], **style)
    lost = [segments[link] for link in sorted(gone & segments.keys())]
    if lost:
        axes.plot(*_joined(lost).T, color=BAD, linewidth=1.6, linestyle=(0, (1.5, 2)), label="down")
        middles = np.array([segment.mean(axis=0) for segment in lost])
        axes.plot(*middles.T, linestyle="none", marker="x", markersize=6, color=BAD)


def class_of(utilisation: float) -> int:
    """Class of a utilisation: a place in CLASSES.

    Args:
        utilisation: a share, 1 is full.
    """
    return int(np.searchsorted(STEPS, utilisation))


def _mark_links(axes: Any, segments: Sequence[NDArray[np.float64]], word: str) -> None:
    if segments:
        style = {"color": BAD, "linewidth": 7, "linestyle": (0, (0.2, 1.2)), "dash_capstyle": "round"}
        axes.plot(*_joined(segments).T, label=word, **style)


def _draw_way(
    axes: Any, segments: Sequence[NDArray[np.float64]], color: str, dash: tuple[int, int] | None, label: str
) -> None:
    if segments:
        style = (0, dash) if dash else "solid"
        axes.plot(*_joined(segments).T, color=color, linewidth=4, linestyle=style, label=label)


def _draw_routers(
    axes: Any,
    points: NDArray[np.float64],
    place: Mapping[str, int],
    marked: Set[str],
    failed: Set[str],
) -> None:
    size = _mark_size(len(points))
    plain = [at for router, at in place.items() if router not in marked and router not in failed]
    axes.plot(*points[plain].T, linestyle="none", marker="o", markersize=size, color=INK, markeredgewidth=0)
    ring = [at for router, at in place.items() if router in marked and router not in failed]
    if ring:
        style = {"markerfacecolor": PAPER, "markeredgecolor": BAD, "markeredgewidth": 2.2}
        axes.plot(*points[ring].T, linestyle="none", marker="o", markersize=max(size, 5) + 2, **style)
    gone = [at for router, at in place.items() if router in failed]
    if gone:
        style = {"color": BAD, "markeredgewidth": 2.5}
        axes.plot(*points[gone].T, linestyle="none", marker="x", markersize=max(size, 5) + 3, **style)


def _mark_size(count: int) -> float:
    """Pixels that the mark of a router is wide in a mesh of so many."""
    return min(7.0, max(1.6, 60 / math.sqrt(max(count, 1))))


def _name_routers(
    axes: Any,
    points: NDArray[np.float64],
    place: Mapping[str, int],
    marked: Sequence[Set[str]],
    segments: Mapping[str, NDArray[np.float64]],
    gone: Set[str],
) -> None:
    """Names beside routers: of all in a small mesh, in a large one of what is marked, the most important first."""
    ordered = [router for some in marked for router in sorted(some & place.keys())]
    first = list(dict.fromkeys(ordered))
    chosen = dict.fromkeys([*first, *sorted(place)]) if len(place) <= NAMED else first[:MOST_NAMES]
    texts = {
        place[router]: router if len(router) <= 24 else router[:23] + "\N{HORIZONTAL ELLIPSIS}" for router in chosen
    }
    if not texts:
        return
    axes.figure.canvas.draw()  # pixels are known once it is laid out
    large = {place[router] for some in marked[:1] for router in some & place.keys()}
    size = _mark_size(len(points))
    radii = [max(size, 5) / 2 + 2.5 if at in large else size / 2 for at in range(len(points))]
    drawn = axes.transData.transform(points)
    links = np.array([axes.transData.transform(each) for each in segments.values()]).reshape(-1, 2, 2)
    crosses = links[[at for at, link in enumerate(segments) if link in gone]].mean(axis=1)
    edges = np.array([0.0, 0.0, *axes.figure.bbox.size])
    for at, found in name_places(texts, drawn, radii, links=links, crosses=crosses, edges=edges).items():
        style = {"ha": found.horizontal, "va": found.vertical, "fontsize": FONT, "color": INK}
        axes.annotate(texts[at], points[at], xytext=found.offset, textcoords="offset points", **style)


# Loads


def loads(facts: Facts) -> CaptionedPicture | None:
    """Utilisation of the links that get fullest: when nothing fails, and in the worst case."""
    shown = facts.links[:BARS]
    if not shown or shown[0].worst_utilisation <= 0:
        return None
    title = "The fullest links: when nothing fails, and in the worst case"
    height = 70 + 17 * len(shown)
    with figure(WIDTH, height) as made:
        axes = made.add_axes((0.4, 34 / height, 0.57, (height - 64) / height))
        rows = np.arange(len(shown))
        before = np.array([100 * link.base_utilisation for link in shown])
        after = np.array([100 * link.worst_utilisation for link in shown])
        axes.hlines(rows, before, after, color=FAINT, linewidth=3)
        axes.plot(before, rows, linestyle="none", marker="o", markersize=6, color=ONE, label="nothing fails")
        axes.plot(after, rows, linestyle="none", marker="D", markersize=6, color=BAD, label="worst case")
        if after.max() > NEAR:
            axes.axvline(100, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_yticks(rows, [_direction(link) for link in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.grid(visible=False, axis="y")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(
            "percent of capacity" if facts.has_capacities else "percent of the busiest link, nothing failed"
        )
        made.legend(loc="upper right", ncols=2)
        svg = svg_of(made, "loads", title)
    what = f"The {counted(len(shown), 'link')} that get fullest" if len(shown) > 1 else "The link"
    caption = f"{what}, each in its busier direction. Its worst case is the scenario in which it is fullest."
    if after.max() > NEAR and facts.has_capacities:
        caption += " The dashed line is the capacity."
    return CaptionedPicture(name="loads", title=title, caption=caption, svg=svg)


def _direction(link: LinkFacts, most: int = 27) -> str:
    half = (most - 3) // 2
    ends = [
        name if len(name) <= half else name[: half - 1] + "\N{HORIZONTAL ELLIPSIS}" for name in (link.src, link.dst)
    ]
    return " \N{RIGHTWARDS ARROW} ".join(ends)


# Curves over scenarios


def losses(facts: Facts) -> CaptionedPicture | None:
    """Draw how much demand is lost in how many scenarios, by family."""
    curves = falling(facts, "lost_msgs_per_s")
    if not curves or not facts.sent_msgs_per_s:
        return None
    drawn = largest(curves)
    title = "How many scenarios lose how many messages"
    with figure(WIDTH, 300) as made:
        axes = made.add_axes((0.13, 0.15, 0.84, 0.70))
        for (name, (rank, value)), (color, dash) in zip(drawn, curve_styles(), strict=False):
            axes.step(rank, 100 * value / facts.wanted_msgs_per_s, where="pre", color=color, linestyle=dash, label=name)
        axes.set_xscale("log")
        axes.set_xlim(left=1)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.set_xlabel("number of scenarios, the worst first")
        axes.set_ylabel("messages lost, percent of all")
        made.legend(loc="upper right", ncols=3, handlelength=2.4)
        svg = svg_of(made, "losses", title)
    name, (rank, value) = drawn[0]
    harmful = np.flatnonzero(value > 0)
    at = harmful[len(harmful) // 2]
    lost = percent(float(value[at]) / facts.wanted_msgs_per_s)
    which = (
        "A line for each family of scenarios that loses any"
        if len(drawn) == len(curves)
        else f"A line for each of the {len(drawn)} families of scenarios that lose most, of {len(curves)} that lose any"
    )
    caption = (
        f"{which}. To read it, for example: "
        f"{counted(int(rank[at]), 'scenario')} of {name} {'loses' if rank[at] == 1 else 'lose'} {lost} or more of what "
        "should arrive."
    )
    return CaptionedPicture(name="losses", title=title, caption=caption, svg=svg)


def curve_styles() -> list[tuple[str, Any]]:
    """Colors and dashes of curves: each differs from all others in more than its color."""
    dashes: list[Any] = ["solid", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 2, 1, 2))]
    return [(color, dash) for dash in dashes for color in (ONE, TWO, THREE)]


def largest(curves: list[tuple[str, Curve]]) -> list[tuple[str, Curve]]:
    """Choose as many curves as can be told apart, in their order: those with the largest values."""
    kept = sorted(curves, key=lambda each: -each[1][1][0])[: len(curve_styles())]
    names = {name for name, _ in kept}
    return [each for each in curves if each[0] in names]


def falling(facts: Facts, measure: str) -> list[tuple[str, Curve]]:
    """Curves of a measure by family: ranks of scenarios, the largest value first, and values; without those of zeros.

    Args:
        facts: of the run.
        measure: one of which the run has a curve for each family.
    """
    found = []
    for family in (each.family for each in facts.families if each.variant == BASE):
        rows = [row for row in facts.curves if (row["family"], row["measure"]) == (family, measure)]
        if rows and rows[0]["value"] > 0:
            found.append((family, _columns(rows, "rank", "value")))
    return found


def _columns(rows: Sequence[Row], *names: str) -> Curve:
    one, other = (np.array([row[name] for row in rows], dtype=np.float64) for name in names)
    return one, other


def stretches(facts: Facts) -> CaptionedPicture | None:
    """Draw how much longer paths become, over all scenarios of the mesh as it is."""
    columns = (("stretch_p50", "half of the paths"), ("stretch_p95", "95 % of them"), ("stretch_p99", "99 % of them"))
    curves = [(label, [row for row in facts.curves if row["measure"] == name]) for name, label in columns]
    if not all(rows for _, rows in curves):
        return None
    title = "How much longer paths become"
    with figure(WIDTH, 300) as made:
        axes = made.add_axes((0.13, 0.15, 0.84, 0.70))
        for (label, rows), (color, dash) in zip(curves, curve_styles()[::4], strict=False):
            share, stretch = rising(rows)
            axes.step(stretch, 100 * share, where="post", color=color, linestyle=dash, linewidth=1.8, label=label)
        axes.set_ylim(0, 102)
        right = max(float(rows[0]["value"]) for _, rows in curves)
        axes.set_xlim(1, right + 0.02 * (right - 1) if right > 1 else 1.1)
        axes.set_xlabel("cost of a path, as a multiple of its cost when nothing fails")
        axes.set_ylabel("percent of scenarios")
        made.legend(loc="upper right", ncols=3, handlelength=2.4)
        svg = svg_of(made, "stretches", title)
    share, stretch = rising(curves[-1][1])
    longer = np.flatnonzero(stretch > 1)
    at = longer[len(longer) // 2] if len(longer) else -1
    caption = (
        f"To read it, for example: in {percent(float(share[at]))} of the scenarios 99 % of the paths cost at most "
        f"{amount(float(stretch[at]))} times what they cost when nothing fails. The further left a line rises, the "
        "better."
    )
    return CaptionedPicture(name="stretches", title=title, caption=caption, svg=svg)


def rising(rows: Sequence[Row]) -> Curve:
    """Curve of the share of scenarios that have at most so much, from the least value on: shares, values.

    Args:
        rows: of one curve, the largest value first.
    """
    larger, values = _columns(rows[::-1], "larger", "value")
    return 1 - larger / rows[-1]["rank"], values


def growth(facts: Facts) -> CaptionedPicture | None:
    """The highest utilisation as demand grows, of the mesh as it is and as it would be changed."""
    kinds = [facts.growth_steps(is_changed=is_changed) for is_changed in (False, True)]
    if len(kinds[0]) < 2:
        return None
    title = "The busiest link as demand grows"
    styles = (("", ONE, BAD, "o", "D"), ("changed, ", THREE, TWO, "s", "^"))
    with figure(WIDTH, 300) as made:
        axes = made.add_axes((0.13, 0.15, 0.84, 0.70))
        for steps, (kind, calm, bad, dot, mark) in zip(kinds, styles, strict=True):
            if not steps:
                continue
            factors = [factor for factor, _ in steps]
            before = [100 * variant.base_utilisation for _, variant in steps]
            after = [100 * variant.worst_utilisation for _, variant in steps]
            dashes = (0, (5, 2))
            axes.plot(factors, before, color=calm, marker=dot, markersize=5, label=f"{kind}nothing fails")
            axes.plot(factors, after, color=bad, marker=mark, markersize=5, linestyle=dashes, label=f"{kind}worst case")
        axes.axhline(100, color=INK, linewidth=1, linestyle=(0, (4, 2)))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("demand, as a multiple of today's")
        axes.set_ylabel("percent of capacity" if facts.has_capacities else "percent of today's busiest link")
        made.legend(loc="upper right", ncols=2, handlelength=2.8)
        svg = svg_of(made, "growth", title)
    full = "The dashed line is the capacity. " if facts.has_capacities else ""
    caption = full + (_limits(kinds[0]) if full else "100 % is what the busiest link has today when nothing fails.")
    return CaptionedPicture(name="growth", title=title, caption=caption, svg=svg)


def _limits(steps: Sequence[tuple[float, VariantFacts]]) -> str:
    """Describe up to what growth all links can carry what they are given."""
    said = []
    for words, values in (
        ("When nothing fails", [step.base_utilisation for _, step in steps]),
        ("in the worst case", [step.worst_utilisation for _, step in steps]),
    ):
        within = [factor for (factor, _), value in zip(steps, values, strict=True) if value <= 1]
        if not within:
            said.append(f"{words} a link is overloaded with today's demand already")
        else:
            most = ", the largest growth that was run" if len(within) == len(steps) else ""
            upto = "with" if max(within) == 1 else f"up to {amount(max(within))} times"
            said.append(f"{words} no link is overloaded {upto} today's demand{most}")
    return "; ".join(said) + "."
