"""Settings of the log."""

from __future__ import annotations

import enum

import attrs

from mesh_config.models.setting_field import setting


class LogLevel(enum.StrEnum):
    """Least severe lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    NONE = "none"


class LogFormat(enum.StrEnum):
    """Form of a line."""

    KEY_VALUE = "key-value"
    JSON = "json"


@attrs.frozen(kw_only=True)
class LogSettings:
    """The log, on standard error."""

    level: LogLevel = setting(
        "Lowest level that is written; `--log-level` of `amqp-mesh run` overrides it until a reload changes it.",
        default=LogLevel.INFO,
    )
    format: LogFormat = setting(
        "Form of a line: `key=value` words, or an object of JSON with the same fields.", default=LogFormat.KEY_VALUE
    )
