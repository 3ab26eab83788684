"""oslo.messaging beside it: callers at one router call a server at another one without a pause, whatever fails."""

from __future__ import annotations

from collections import Counter

from tests.chaos.stage import Stage
from tests.helpers.oslo import OsloWorker, oslo_url, outcomes

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
        self.outcomes: dict[str, int] = {}
        """Calls by how they ended: `ok` or the error's name."""
        self.twice = 0
        """Calls that their server got more than once."""
        self._servers.do("open", transport="t", url=oslo_url(stage.mesh, "R3", "R2", "R1"))
        self._servers.do("serve", transport="t", topic=TOPIC, server="chaos")
        self._callers.do("open", transport="t", url=oslo_url(stage.mesh, "R1", "R2", "R3"))
        self._callers.do("load", name="load", transport="t", topic=TOPIC, threads=THREADS, timeout=DEADLINE_S)

    def finish(self) -> None:
        """Stop calling, and see that each call ended once and reached its server at most once."""
        ledger = self._stage.ledger
        records = self._callers.do("stop_load", name="load", within_s=120)
        self.outcomes = outcomes(records)
        got = Counter(str(key) for method, key, _ in self._servers.do("seen", name="chaos") if method == "echo")
        self.twice = sum(count > 1 for count in got.values())
        if self.outcomes.get("wrong"):
            ledger.violate("damaged", f"{self.outcomes['wrong']} calls had the answer of another one")
        missing = [each["key"] for each in records if each["outcome"] == "ok" and not got[str(each["key"])]]
        if missing:
            ledger.violate("accepted by nobody", f"calls answered and not received: {missing[:5]}")
        for worker in (self._callers, self._servers):
            worker.kill()
