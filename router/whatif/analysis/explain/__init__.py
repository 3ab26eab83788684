"""One scenario, link, router, pair or address in words: what it is, what fails, and what that does to it."""

from router.whatif.analysis.explain.address import explain_address
from router.whatif.analysis.explain.base_and_scenario import BaseAndScenario
from router.whatif.analysis.explain.explanation import Explanation
from router.whatif.analysis.explain.link_or_router import explain_link, explain_router
from router.whatif.analysis.explain.pair import explain_pair
from router.whatif.analysis.explain.scenario import explain_scenario

__all__ = [
    "Explanation",
    "BaseAndScenario",
    "explain_address",
    "explain_link",
    "explain_pair",
    "explain_router",
    "explain_scenario",
]
