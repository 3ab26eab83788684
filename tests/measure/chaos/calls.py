"""oslo.messaging beside it: callers at one router call a server at another one without a pause, whatever fails."""

from __future__ import annotations

from collections import Counter

from tests.helpers.oslo import OsloWorker, oslo_url, outcomes
from tests.measure.chaos.stage import Stage

TOPIC = "chaos"
THREADS = 4
DEADLINE_S = 4
"""Of each call, seconds."""


class Calls:
    """Two processes; `finish` ends them and judges."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._servers = OsloWorker(stage.folder / "servers.log")
        self._callers = OsloWorker(stage.folder / "callers.log")
        self.outcomes: Counter[str] = Counter()
        """Calls by how they ended: `ok` or the error's name."""
        self.twice = 0
        """Calls that their server got more than once."""
        self._loads = 0
        self._missing: set[str] = set()
        """Calls that were answered, by key, until their server is seen to have got them."""
        self._servers.do("open", transport="t", url=oslo_url(stage.mesh, "R3", "R2", "R1"))
        self._servers.do("serve", transport="t", topic=TOPIC, server="chaos")
        self._callers.do("open", transport="t", url=oslo_url(stage.mesh, "R1", "R2", "R3"))

    def resume(self) -> None:
        """Begin to call."""
        self._loads += 1
        name = f"load-{self._loads}"
        self._callers.do("load", name=name, transport="t", topic=TOPIC, threads=THREADS, timeout=DEADLINE_S)

    def pause(self) -> None:
        """Stop calling, and keep what became of the calls."""
        records = self._callers.do("stop_load", name=f"load-{self._loads}", within_s=120)
        self.outcomes.update(outcomes(records))
        self._missing |= {str(each["key"]) for each in records if each["outcome"] == "ok"}

    def finish(self) -> None:
        """See that each call reached its server at most once, and once if it was answered."""
        ledger = self._stage.ledger
        got = Counter(str(key) for method, key, _ in self._servers.do("seen", name="chaos") if method == "echo")
        self.twice = sum(count > 1 for count in got.values())
        if self.outcomes["wrong"]:
            ledger.violate("damaged", f"{self.outcomes['wrong']} calls had the answer of another one")
        if self._missing - set(got):
            ledger.violate("accepted by nobody", f"answered and not received: {sorted(self._missing - set(got))[:5]}")
        for worker in (self._callers, self._servers):
            worker.kill()
