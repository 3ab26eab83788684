"""The questions in SQL, asked as they stand on their page; each answer worked out once more in plain Python."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from router.whatif import Options, Run, import_model, play
from tests.whatif.runs import losing, relieved

ROOT = Path(__file__).parents[3]
FILES = ROOT / "examples" / "what-if"
PAGE = (ROOT / "docs" / "how_to" / "what-if-sql.md").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"^## (\d+)\. [^\n]*\n.*?^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))

Rows = list[dict[str, Any]]


class Tables:
    """Rows of a run by table; those of loads with what their scenario is, and the mesh as it is alone."""

    def __init__(self, run: Run) -> None:
        self.model = run.model
        self.scenario: dict[int, dict[str, Any]] = {row["scenario"]: row for row in run.arrow("scenario").to_pylist()}
        self.every_load: Rows = run.arrow("scenario_load").to_pylist()
        self.loads = [row for row in self.every_load if self.scenario[row["scenario"]]["variant"] == "base"]
        self.calm = {
            (row["link"], row["src"]): row for row in run.arrow("link_load").to_pylist() if row["variant"] == "base"
        }
        self.lost_pairs: Rows = [row for row in run.arrow("pair_impact").to_pylist() if row["is_lost"]]
        self.impact: Rows = run.arrow("address_impact").to_pylist()
        self.link_demands: Rows = run.link_demands(down=["CH--DE"]).to_pylist()
        self.spof: Rows = run.arrow("router_spof").to_pylist()

    def by_direction(self) -> dict[tuple[str, str], Rows]:
        found = defaultdict(list)
        for row in self.loads:
            found[row["link"], row["src"]].append(row)
        return found

    def of_variant(self, name: str) -> Rows:
        return [row for row in self.scenario.values() if row["variant"] == name]

    def of_failed(self, link: str) -> Rows:
        return [row for row in self.loads if self.scenario[row["scenario"]]["failed_links"] == [link]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    model, _ = import_model(
        FILES / "Geant2012.graphml", details=[FILES / "details.yaml"], demands=FILES / "demands.csv"
    )
    options = Options(engine="local", loads="all")
    folder = tmp_path_factory.mktemp("sql") / "out"
    return play(model, folder, families="links:1,routers:1,srlg", growth="1:2:0.25", options=options)


@pytest.fixture(scope="module")
def tables(run: Run, spark: SparkSession) -> Tables:
    names = run.views(spark)
    spark.createDataFrame(run.link_demands(down=["CH--DE"])).createOrReplaceTempView("link_demand")
    assert {*run.tables, "routers", "links", "addresses", "subscribers", "groups", "demands"} <= {*names}
    return Tables(run)


def load_of_a_link(tables: Tables) -> list[tuple[Any, ...]]:
    rows = [row for row in tables.of_failed("CH--DE") if row["link"] == "AT--DE"]
    assert max(row["utilisation"] for row in rows) > 0.8, "the tutorial's worst case"
    return [(row["src"], row["dst"], row["msgs_per_s"], row["utilisation"]) for row in rows]


def where_traffic_goes(tables: Tables) -> list[tuple[Any, ...]]:
    more = {
        (row["link"], row["src"]): row["msgs_per_s"] - tables.calm[row["link"], row["src"]]["msgs_per_s"]
        for row in tables.of_failed("CH--DE")
    }
    return sorted(((*key, value) for key, value in more.items() if value > 0), key=lambda row: (-row[2], row[0]))


def failures_above_a_limit(tables: Tables) -> list[tuple[Any, ...]]:
    rows = [row for row in tables.loads if row["utilisation"] > 0.75 and row["family"] in ("links:1", "routers:1")]
    rows.sort(key=lambda row: (-row["utilisation"], row["link"], row["scenario"]))
    found = []
    for row in rows:
        scenario = tables.scenario[row["scenario"]]
        failed = ", ".join(scenario["failed_links"] + scenario["failed_routers"])
        found.append((row["link"], row["src"], row["utilisation"], scenario["family"], failed))
    return found


def percentile(values: list[float], share: float) -> float:
    """As SQL has it: between the two nearest."""
    place = share * (len(values) - 1)
    low, high = math.floor(place), math.ceil(place)
    return values[low] + (place - low) * (values[high] - values[low])


def use_of_links(tables: Tables) -> list[tuple[Any, ...]]:
    found = []
    for key, rows in tables.by_direction().items():
        shares = sorted(row["utilisation"] for row in rows)
        idle = sum(row["msgs_per_s"] == 0 and not row["is_down"] for row in rows)
        found.append((*key, percentile(shares, 0.5), percentile(shares, 0.95), shares[-1], idle))
    return sorted(found, key=lambda row: (-row[4], row[0], row[1]))[:10]


def hours_above_a_limit(tables: Tables) -> list[tuple[Any, ...]]:
    hours: dict[tuple[str, str], float] = defaultdict(float)
    for key, rows in tables.by_direction().items():
        for row in rows:
            if row["utilisation"] > 0.6:
                hours[key] += 8760 * tables.scenario[row["scenario"]]["probability"]
    return sorted(((*key, round(value, 3)) for key, value in hours.items()), key=lambda row: (-row[2], *row[:2]))


def growth_until_full(tables: Tables) -> list[tuple[Any, ...]]:
    least: dict[tuple[str, str], float] = {}
    for row in tables.every_load:
        variant = tables.scenario[row["scenario"]]["variant"]
        if row["family"] != "srlg" and row["utilisation"] >= 1:
            growth = 1.0 if variant == "base" else float(variant.removeprefix("growth "))
            key = row["link"], row["src"]
            least[key] = min(growth, least.get(key, math.inf))
    return sorted(((*key, value) for key, value in least.items()), key=lambda row: (row[2], row[0]))


def risk_groups(tables: Tables) -> list[tuple[Any, ...]]:
    rates = {group.name: group.failures_per_year for group in tables.model.groups if group.kind == "srlg"}
    found = [
        (row["group"], rates[row["group"]], *(row[name] for name in names))
        for row in tables.scenario.values()
        for names in [("scenario", "max_utilisation_link", "max_utilisation", "lost_msgs_per_s")]
        if row["variant"] == "base" and row["group"] in rates
    ]
    return sorted(found, key=lambda row: (-row[4], row[0]))


def publishers_behind_full_links(tables: Tables) -> list[tuple[Any, ...]]:
    worst: dict[str, float] = defaultdict(float)
    for row in tables.loads:
        worst[row["src"]] = max(worst[row["src"]], row["utilisation"])
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for demand in tables.model.demands:
        if worst[demand.src] > 0.75:
            sums[demand.klass, demand.src] += demand.msgs_per_s
    found = [(*key, amount, worst[key[1]]) for key, amount in sums.items()]
    return sorted(found, key=lambda row: (-row[3], row[0], row[1]))


def room_of_routers(tables: Tables) -> list[tuple[Any, ...]]:
    capacity = {link.id: link.capacity_msgs or 0.0 for link in tables.model.links}
    room: dict[tuple[str, int], float] = defaultdict(float)
    for row in tables.loads:
        if row["src"] not in tables.scenario[row["scenario"]]["failed_routers"]:
            free = 0.0 if row["is_down"] else capacity[row["link"]] - row["msgs_per_s"]
            room[row["src"], row["scenario"]] += free
    least: dict[str, tuple[float, int]] = {}
    for (src, scenario), free in room.items():
        least[src] = min((free, scenario), least.get(src, (math.inf, 0)))
    found = [(src, scenario, free) for src, (free, scenario) in least.items()]
    return sorted(found, key=lambda row: (row[2], row[0]))[:10]


def links_that_could_go(tables: Tables) -> list[tuple[Any, ...]]:
    cuts = {row["element"] for row in tables.spof if row["kind"] == "link" and row["is_cut"]}
    worst: dict[str, float] = defaultdict(float)
    for row in tables.loads:
        worst[row["link"]] = max(worst[row["link"]], row["utilisation"])
    found = [(link, most) for link, most in worst.items() if most < 0.05 and link not in cuts]
    return sorted(found, key=lambda row: (row[1], row[0]))


SINGLE = ("links:1", "routers:1")


def failed(scenario: dict[str, Any]) -> str:
    return ", ".join(scenario["failed_links"] + scenario["failed_routers"])


def same_failure_after_growth(tables: Tables) -> list[tuple[Any, ...]]:
    names = ("family", "group", "failed_links", "failed_routers")
    grown = {str([row[name] for name in names]): row for row in tables.of_variant("growth 1.5")}
    found = []
    for row in tables.of_variant("base"):
        other = grown[str([row[name] for name in names])]
        found.append((row["family"], failed(row), row["max_utilisation"], *(other[each] for each in MOST)))
    return sorted(found, key=lambda row: -row[3])[:10]


def routers_that_lose_each_other(tables: Tables) -> list[tuple[Any, ...]]:
    found = []
    for pair in tables.lost_pairs:
        row = tables.scenario[pair["scenario"]]
        if row["variant"] == "base" and row["family"] in SINGLE and pair["src"] < pair["dst"]:
            parted = sum(each["scenario"] == pair["scenario"] for each in tables.lost_pairs)
            found.append((-parted, pair["scenario"], pair["src"], pair["dst"], failed(row)))
    return [(name, src, dst, -parted) for parted, _, src, dst, name in sorted(found)][:50]


def losses_of_addresses(tables: Tables) -> list[tuple[Any, ...]]:
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in tables.impact:
        scenario = tables.scenario[row["scenario"]]
        if scenario["variant"] == "base" and row["lost_msgs_per_s"] > 0:
            sums[row["address"]][0] += scenario["probability"]
            sums[row["address"]][1] += scenario["probability"] * row["lost_msgs_per_s"]
    found = [(name, round(share * 8760, 3), lost * 8760 * 3600) for name, (share, lost) in sums.items()]
    return sorted(found, key=lambda row: (-row[2], row[0]))


def demands_on_a_link(tables: Tables) -> list[tuple[Any, ...]]:
    classes: dict[tuple[str, str | None, str | None], set[str]] = defaultdict(set)
    for demand in tables.model.demands:
        classes[demand.src, demand.dst, demand.address].add(demand.klass)
    found = []
    for row in tables.link_demands:
        if (row["link"], row["src"]) == ("AT--DE", "AT"):
            key = row["demand_src"], None if row["address"] else row["demand_dst"], row["address"]
            amount = row["msgs_per_s"]
            found.append((row["demand_src"], row["demand_dst"], row["address"], amount, sorted(classes[key])))
    (load,) = (row["msgs_per_s"] for row in tables.of_failed("CH--DE") if (row["link"], row["src"]) == ("AT--DE", "AT"))
    assert sum(row[3] for row in found) == pytest.approx(load, rel=1e-12)
    return sorted(found, key=lambda row: (-row[3], row[0], row[2] or ""))


MOST = ("max_utilisation", "max_utilisation_link")
ANSWERS: tuple[Callable[[Tables], list[tuple[Any, ...]]], ...] = (
    load_of_a_link,
    where_traffic_goes,
    failures_above_a_limit,
    use_of_links,
    hours_above_a_limit,
    growth_until_full,
    risk_groups,
    publishers_behind_full_links,
    room_of_routers,
    links_that_could_go,
    same_failure_after_growth,
    routers_that_lose_each_other,
    losses_of_addresses,
    demands_on_a_link,
)


@pytest.mark.parametrize("number", range(1, 15))
def test_the_query_of_the_page_answers_the_question(number: int, tables: Tables, spark: SparkSession) -> None:
    found = [tuple(row) for row in spark.sql(QUERIES[str(number)]).collect()]
    expected = ANSWERS[number - 1](tables)
    assert expected, "the example has something to show"
    assert [row[:2] for row in found] == [row[:2] for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        reals = [value for value in wanted if isinstance(value, float)]
        assert [value for value in row if isinstance(value, float)] == pytest.approx(reals, rel=1e-12)
        others = [value for value in wanted if not isinstance(value, float)]
        assert [value for value in row if not isinstance(value, float)] == others


def test_the_query_for_losses_counts_what_is_lost_while_nothing_fails(spark: SparkSession, tmp_path: Path) -> None:
    run = play(losing(), tmp_path / "run", families="links:1-2,routers:1", options=Options(engine="local"))
    run.views(spark, "losing_")
    query = re.sub(r"(?<=FROM |JOIN )(address_impact|scenario)\b", r"losing_\1 \1", QUERIES["13"])
    rows = spark.sql(query.replace("address_impact impact", "impact")).collect()
    found = {row["address"]: row for row in rows}
    played = math.fsum(row["probability"] for row in run.arrow("scenario").to_pylist())
    summed = {row["address"]: row for row in run.arrow("address_summary").to_pylist()}
    assert found.keys() == summed.keys() == {"island", "nobody", "served"}
    for address, row in summed.items():
        assert found[address]["lost_msgs_a_year"] == pytest.approx(row["mean_lost_msgs_per_s"] * 8760 * 3600, rel=1e-12)
    assert [found[address]["hours_a_year"] for address in ("island", "nobody")] == [round(played * 8760, 3)] * 2
    assert found["nobody"]["lost_msgs_a_year"] == pytest.approx(34 * played * 8760 * 3600, rel=1e-12)


def test_the_query_for_losses_counts_no_scenario_in_which_a_failure_ends_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    run = play(relieved(), tmp_path / "run", families="links:1-2", options=Options(engine="local"))
    run.views(spark, "relieved_")
    query = re.sub(r"(?<=FROM |JOIN )(address_impact|scenario)\b", r"relieved_\1 \1", QUERIES["13"])
    (found,) = spark.sql(query.replace("address_impact impact", "impact")).collect()
    (summed,) = (row for row in run.arrow("address_summary").to_pylist() if row["address"] == found["address"] == "q")
    assert found["hours_a_year"] == pytest.approx(summed["probability"] * 8760, abs=0.001)
    assert found["lost_msgs_a_year"] == pytest.approx(summed["mean_lost_msgs_per_s"] * 8760 * 3600, rel=1e-12)


def test_each_question_of_the_page_is_asked() -> None:
    assert list(QUERIES) == [str(number) for number in range(1, 15)]
    assert len(ANSWERS) == 14
    assert PAGE.count("```sql") == 14
