"""One scenario, link, router, pair or address in words: what it is, what fails, and what that does to it."""

from router.simulation.whatif.explain.address import explain_address
from router.simulation.whatif.explain.element import explain_link, explain_router
from router.simulation.whatif.explain.explanation import Explanation
from router.simulation.whatif.explain.pair import explain_pair
from router.simulation.whatif.explain.scenario import explain_scenario
from router.simulation.whatif.explain.subject import Subject

__all__ = [
    "Explanation",
    "Subject",
    "explain_address",
    "explain_link",
    "explain_pair",
    "explain_router",
    "explain_scenario",
]
