"""Settings of the flight recorder."""

from __future__ import annotations

import attrs

from mesh_config.models.setting_field import MIB, TEXT_PATTERN, setting


@attrs.frozen(kw_only=True)
class RecorderSettings:
    """The flight recorder: what moved the control plane lately."""

    max_bytes: int = setting(
        "Estimated memory for recent inputs of the control plane; 0 keeps nothing.",
        default=8 * MIB,
        unit="bytes",
        low=0,
        high=1024 * MIB,
        beyond="the oldest half is forgotten",
    )
    max_calls: int = setting(
        "Maximum number of calls of the control plane that are kept.",
        default=20000,
        unit="calls",
        low=2,
        high=10000000,
        beyond="the oldest half is forgotten",
    )
    directory: str | None = setting(
        "Directory for recordings, which are written after a fault of the program and on SIGUSR1. When "
        "absent only SIGUSR1 writes one, to the system's directory for temporary files.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    max_files: int = setting(
        "Maximum number of recordings of this router in the directory.",
        default=10,
        unit="files",
        low=1,
        high=1000,
        beyond="not written, `recording_failed`",
    )
