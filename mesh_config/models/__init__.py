"""Settings of one router and of a whole mesh: plain frozen data, checked elsewhere (`mesh_config.check`).

Every field is made by `setting()`, which carries what the generated reference, the JSON Schema and the checks need: a
sentence, a unit and a range. Units inside the program are seconds, bytes and messages. Each part has its module here;
the rest of the program imports them from the package.
"""

from mesh_config.models.addresses import DEFAULT_ADDRESSES, AddressSettings, Treatment
from mesh_config.models.connections import ConnectionSettings, ConnectorSettings, ListenerSettings, Role
from mesh_config.models.forwarding import ForwardingSettings
from mesh_config.models.http import HttpSettings
from mesh_config.models.link_state import LinkStateSettings
from mesh_config.models.log import LogFormat, LogLevel, LogSettings
from mesh_config.models.mesh import MeshSettings, RouterSettings
from mesh_config.models.recorder import RecorderSettings
from mesh_config.models.security import (
    ENVIRONMENT_PATTERN,
    PASSWORD_MECHANISMS,
    PRINCIPAL_PATTERN,
    CertificateField,
    ClientCertificates,
    Mechanism,
    NeighborSettings,
    TlsMode,
    TlsSettings,
    TlsVersion,
)
from mesh_config.models.setting_field import HOST_PATTERN, ID_PATTERN, MIB, NAME_PATTERN, TEXT_PATTERN, setting
from mesh_config.models.vhosts import VHOST_PATTERN, GroupSettings, ManagementRight, VhostSettings

__all__ = [
    "DEFAULT_ADDRESSES",
    "ENVIRONMENT_PATTERN",
    "PRINCIPAL_PATTERN",
    "HOST_PATTERN",
    "ID_PATTERN",
    "MIB",
    "NAME_PATTERN",
    "PASSWORD_MECHANISMS",
    "TEXT_PATTERN",
    "VHOST_PATTERN",
    "AddressSettings",
    "CertificateField",
    "ClientCertificates",
    "ConnectionSettings",
    "ConnectorSettings",
    "ForwardingSettings",
    "GroupSettings",
    "HttpSettings",
    "LinkStateSettings",
    "ListenerSettings",
    "LogFormat",
    "LogLevel",
    "LogSettings",
    "ManagementRight",
    "Mechanism",
    "MeshSettings",
    "NeighborSettings",
    "RecorderSettings",
    "Role",
    "RouterSettings",
    "TlsMode",
    "TlsSettings",
    "TlsVersion",
    "Treatment",
    "VhostSettings",
    "setting",
]
