"""Who gets in by what: tried in tests/interop/test_security.py, and the table in docs/explanation/security.md."""

from __future__ import annotations

from mesh_config.models import Mechanism

MODES = ("none", "required", "optional")
"""TLS of the listeners for clients, in their order."""
NO_SASL = "no SASL"
PROTON, OSLO, RHEA = "python-proton", "oslo.messaging", "rhea"
MECHANISMS_OF = {
    PROTON: (NO_SASL, *Mechanism),
    OSLO: (NO_SASL, *Mechanism),
    RHEA: (NO_SASL, Mechanism.ANONYMOUS, Mechanism.PLAIN, Mechanism.EXTERNAL),
}
"""Mechanisms that the client knows."""

WHO_GETS_IN = tuple(
    (client, mechanism, mode)
    for client, mechanisms in MECHANISMS_OF.items()
    for mechanism in mechanisms
    for mode in MODES
    if mechanism != Mechanism.EXTERNAL or mode != "none"
)
"""Client, mechanism and TLS of the listener."""
