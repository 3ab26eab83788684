"""The stages of a message: what may follow what, who writes it, and what becomes of a message that goes wrong."""

from __future__ import annotations

import ast
import importlib.util
import re
from itertools import product
from pathlib import Path

import pytest

import router
from router.dataplane import transfer_stages
from router.dataplane.links import Transfer, new_transfer
from router.dataplane.transfer_lifecycle import EVENTS, STAGES, TABLE, StageError, advance, next_stages
from tests.helpers.engine import Bench
from tests.helpers.peer import message

CHECKOUT = Path(__file__).parents[2]
DATAPLANE = Path(router.__file__).parent / "dataplane"


def transfer_in(stage: int) -> Transfer:
    transfer = new_transfer(None, 0, 0.0)
    transfer.state = stage
    return transfer


@pytest.mark.parametrize(("stage", "event"), list(product(STAGES, EVENTS)), ids=str)
def test_each_pair_of_stage_and_event_leads_where_the_table_says(stage: int, event: int) -> None:
    transfer = transfer_in(stage)
    if (stage, event) in TABLE:
        advance(transfer, event)
        assert transfer.state == TABLE[stage, event]
    else:
        with pytest.raises(StageError, match=f"{EVENTS[event]} of a message that is {STAGES[stage]}") as raised:
            advance(transfer, event)
        assert raised.value.transfer is transfer
        assert transfer.state == stage


def test_a_message_may_finish_in_every_stage_and_nothing_else_follows() -> None:
    ends = {event for stage, event in TABLE if stage == transfer_stages.DONE}
    assert ends == {transfer_stages.FINISHED}
    assert all((stage, transfer_stages.FINISHED) in TABLE for stage in STAGES)


def test_every_stage_is_reached_from_the_first_and_every_event_leads_somewhere() -> None:
    found = {transfer_stages.NEW}
    for _ in STAGES:
        found |= {to for (stage, _), to in TABLE.items() if stage in found}
    assert found == set(STAGES)
    assert {event for _, event in TABLE} == set(EVENTS)


def test_c_knows_the_same_numbers_and_the_same_table() -> None:
    declared = (DATAPLANE / "transfer_stages.pxd").read_text(encoding="utf-8")
    numbers = {name: int(number) for name, number in re.findall(r"^    (\w+) = (\d+)$", declared, re.MULTILINE)}
    assert numbers == {name: getattr(transfer_stages, name) for name in numbers}
    assert numbers.keys() >= {*STAGES.values(), *EVENTS.values()}
    assert {numbers[name]: name for name in STAGES.values()} == STAGES
    assert {numbers[name]: name for name in EVENTS.values()} == EVENTS
    rows = "".join(f"            {{{', '.join(map(str, row))}}},\n" for row in next_stages())
    array = f"next[{len(STAGES)}][{len(EVENTS)}] = {{\n{rows}        }};\n"
    assert array in (DATAPLANE / "transfer_lifecycle.pxd").read_text(encoding="utf-8"), array


def test_one_function_alone_writes_the_stage_of_a_message() -> None:
    writers = [
        f"{path.stem}.{function.name}"
        for path in sorted(DATAPLANE.glob("*.py"))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "state"
    ]
    assert writers == ["links.new_transfer", "transfer_lifecycle.advance"]


def test_the_picture_of_stages_is_made_from_the_table() -> None:
    spec = importlib.util.spec_from_file_location("docs_stages", CHECKOUT / "docs" / "stages.py")
    assert spec is not None
    assert spec.loader is not None
    stages = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stages)
    assert stages.PAGE.read_text(encoding="utf-8") == stages.page(), "write it anew: python docs/stages.py"
    drawn = stages.PICTURE.read_text(encoding="utf-8")
    assert drawn == stages.picture(), "draw it anew: python docs/stages.py"
    assert all(f">{name}<" in drawn for name in STAGES.values())
    assert all(re.search(rf">(\w+, )*{name.lower()}[,<]", drawn) for name in EVENTS.values())


@pytest.mark.parametrize("stage", [transfer_stages.SENT, transfer_stages.HOLDING], ids=["sent", "holding"])
def test_a_message_in_an_impossible_stage_ends_with_an_outcome_and_no_other_does(
    bench: Bench, capsys: pytest.CaptureFixture[str], stage: int
) -> None:
    router = bench.router("A", is_forgiving=True)
    receiver = bench.client(router).receiver("queue").accepting()
    sender = bench.client(router).sender(None)
    sent = [sender.send(message(body, address="queue")) for body in ("spoilt", "good")]
    bench.run()
    entry = router.fib.find("queue")
    assert entry is not None
    spoilt = next(iter(entry.waiting))
    spoilt.state = stage
    capsys.readouterr()

    receiver.flow(10)
    bench.run()
    assert [one.outcome for one in sent] == ["modified", "accepted"]
    assert sent[0].is_settled
    assert receiver.bodies == ["good"]
    lines = capsys.readouterr()
    assert (lines.out + lines.err).count("message_fault") == 1
    assert not entry.waiting
    assert entry.waiting_bytes == 0
    after = sender.send(message("after", address="queue"))
    bench.run()
    assert after.outcome == "accepted"
    assert router.data_plane.is_quiet()
