"""Distances on the surface of the earth, and the delay of fibre between places."""

from __future__ import annotations

from typing import Any, Final, Protocol

import numpy as np

EARTH_RADIUS_KM: Final = 6371.0088
"""Mean radius."""
KM_PER_MS: Final = 200.0
"""Light in fibre."""


class Located(Protocol):
    """Something that may have coordinates, in degrees."""

    @property
    def latitude(self) -> float | None:
        """North of the equator."""

    @property
    def longitude(self) -> float | None:
        """East of Greenwich."""


def distance_km(latitude: Any, longitude: Any, other_latitude: Any, other_longitude: Any) -> Any:
    """Length of the great circle between places, km: numbers or arrays of them, in degrees; NaN gives NaN."""
    north, other_north = np.radians(latitude), np.radians(other_latitude)
    across = np.sin((other_north - north) / 2) ** 2
    along = np.sin(np.radians(np.subtract(other_longitude, longitude)) / 2) ** 2
    chord = across + np.cos(north) * np.cos(other_north) * along
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(chord, 1.0)))


def fibre_ms(km: float) -> float:
    """Work out the delay of fibre, to a nanosecond, since the last digits of trigonometry differ by machine.

    Args:
        km: its length.
    Returns: milliseconds.
    """
    return round(km / KM_PER_MS, 6)


def fibre_between_ms(one: Located, other: Located) -> float | None:
    """Delay of straight fibre between two places, ms; None if one has no coordinates."""
    places = (one.latitude, one.longitude, other.latitude, other.longitude)
    return None if None in places else fibre_ms(float(distance_km(*places)))
