"""Settings of forwarding as they are at present: held in one place, for all who go by them."""

from __future__ import annotations

from mesh_config.models import ForwardingSettings


class CurrentSettings:
    """Holder of the settings of forwarding. A reload changes what it holds, so that nobody keeps a copy.

    Only those that hold from the start of a router until its end may be kept elsewhere (`ControllerContext`).

    Attributes:
        forwarding: as they are at present; those of credit as they were at the start
            (`mesh_config.change_plan.FORWARDING_AT_START`).
    """

    __slots__ = ("forwarding",)

    def __init__(self, forwarding: ForwardingSettings) -> None:
        self.forwarding = forwarding
