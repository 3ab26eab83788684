"""One scenario, link, router, pair or address in words: what it is, what fails, and what that does to it."""

from router.whatif.analysis.explain.address import explain_address
from router.whatif.analysis.explain.base_and_scenario import BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation
from router.whatif.analysis.explain.link_or_router import explain_link, explain_router
from router.whatif.analysis.explain.pair import explain_pair
from router.whatif.analysis.explain.scenario import explain_scenario
from router.whatif.wording import SPLIT

__all__ = [
    "Explanation",
    "BaseAndScenario",
    "explain",
    "explain_address",
    "explain_link",
    "explain_pair",
    "explain_router",
    "explain_scenario",
]


def explain(
    subject: BaseAndScenario,
    *,
    link: str | None = None,
    router: str | None = None,
    pair: tuple[str, str] | None = None,
    address: str | None = None,
) -> Explanation:
    """Explain one link, router, pair of routers or address as it is in a scenario, or the scenario itself.

    Raises: TableError for what is not there.
    """
    if link is not None:
        found = explain_link(subject, link)
    elif router is not None:
        found = explain_router(subject, router)
    elif pair is not None:
        found = explain_pair(subject, *pair)
    elif address is not None:
        found = explain_address(subject, address)
    else:
        found = explain_scenario(subject)
    return found.noting(SPLIT) if subject.is_split else found
