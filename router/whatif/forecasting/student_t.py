"""Student's t distribution, of which error bands of a trend are made: no library that is needed elsewhere has it."""

from __future__ import annotations

import math


def t_of_confidence(confidence: float, freedom: int) -> float:
    """Find the number of standard errors within which a share of all values lies, on both sides together.

    Args:
        confidence: the share, above 0 and below 1.
        freedom: degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while _within(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < confidence else (low, middle)
    return high


def _within(t: float, freedom: int) -> float:
    """Share of values between -t and t. Source: Abramowitz and Stegun, 26.7.3 and 26.7.4, which are exact."""
    angle = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2 == 1
    total, term = 0.0, cosine if is_odd else 1.0
    for step in range(1 + freedom % 2, freedom, 2):  # of (freedom - 1) // 2 or freedom // 2 terms
        total += term
        term *= cosine * cosine * step / (step + 1)
    return 2 / math.pi * (angle + sine * total) if is_odd else sine * total
