"""Names that settings have in the configuration of Qpid Dispatch: who brings them along is told ours.

Source: docs/how_to/replace-qdrouterd.md, whose tables say what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

NAMES: Final[Mapping[str, str]] = {
    "helloIntervalSeconds": "link_state.hello_interval_s",
    "helloMaxAgeSeconds": "link_state.hello_max_age_s",
    "raIntervalSeconds": "link_state.ra_interval_s",
    "raIntervalFluxSeconds": "link_state.ra_interval_flux_s",
    "remoteLsMaxAgeSeconds": "link_state.remote_ls_max_age_s",
    "defaultDistribution": "default_treatment",
    "saslConfigDir": "users_file",
    "saslConfigName": "users_file",
    "sslProfile": "tls",
    "requireSsl": "tls_mode",
    "requireEncryption": "tls_mode",
    "saslMechanisms": "sasl",
    "authenticatePeer": "sasl",
    "trustedCertsFile": "ca",
    "maxFrameSize": "max_frame_bytes",
    "maxSessions": "max_sessions",
    "maxSessionFrames": "forwarding.session_window_frames",
    "idleTimeoutSeconds": "idle_timeout_s",
    "initialHandshakeTimeoutSeconds": "handshake_timeout_s",
    "multiTenant": "vhost_prefix",
    "policyVhost": "vhost",
    "verifyHostname": "verify_host",
    "saslUsername": "user",
    "saslPassword": "password_file",
    "certFile": "certificate",
    "privateKeyFile": "key",
    "caCertFile": "ca",
    "password": "key_password_file",
    "passwordFile": "key_password_file",
    "protocols": "min_version",
    "uidFormat": "user_from",
    "distribution": "treatment",
    "maxConnections": "max_connections",
    "maxMessageSize": "max_message_bytes",
    "enable": "level",
    "enableVhostPolicy": "vhosts",
}
"""Names of settings in Qpid Dispatch, each with the key, or path of keys, by which the same is set here."""
WITHOUT: Final[Sequence[str]] = (
    "workerThreads", "allowUnsettledMulticast", "allowResumableLinkRoute", "debugDumpFile", "metadata",
    "timestampsInUTC", "timestampFormat", "socketAddressFamily", "linkCapacity", "stripAnnotations", "websockets",
    "httpRootDir", "failoverUrls", "openProperties", "messageLoggingComponents", "saslPlugin", "protocolFamily",
    "allowRedirect", "uidNameMappingFile", "priority", "waypoint", "ingressPhase", "egressPhase",
    "enableFallback", "linkRoute", "autoLink", "exchange", "binding", "outputFile", "includeTimestamp",
    "includeSource", "authServicePlugin",
)  # fmt: skip
"""Names in Qpid Dispatch of what can't be set here."""


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").casefold()


_NAMES: Final = {_folded(name): ours for name, ours in NAMES.items()}
_WITHOUT: Final = {_folded(name) for name in WITHOUT}


def own_name(name: str, known: Sequence[str]) -> str | None:
    """Name that a setting of Qpid Dispatch has here, if it is or begins with one of the known keys; else None."""
    ours = _NAMES.get(_folded(name))
    return ours if ours is not None and ours.partition(".")[0] in known else None


def is_without_counterpart(name: str) -> bool:
    """Whether this is a setting of Qpid Dispatch that can't be set here."""
    return _folded(name) in _WITHOUT
