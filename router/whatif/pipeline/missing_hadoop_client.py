"""Clients of file systems that Hadoop has and Spark's package lacks, and how they are given to Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from mesh_config.findings import nearest
from router.whatif.pipeline.run_staging import RunError, run_error

CLIENTS: Final[Mapping[str, str]] = {
    "s3a": "hadoop-aws",
    "abfs": "hadoop-azure",
    "abfss": "hadoop-azure",
    "wasb": "hadoop-azure",
    "wasbs": "hadoop-azure",
    "gs": "hadoop-gcp",
}
"""Schemes that Hadoop has clients for and Spark brings none, each with the package of that client."""
_SCHEMES: Final = ("hdfs", "viewfs", "file", *CLIENTS)
_NO_CLASS: Final = re.compile(r"ClassNotFoundException: (?:Class )?([\w.$]+)|NoClassDefFoundError: ([\w./$]+)")


def client_error(address: str, words: str, hadoop: str) -> RunError:
    """Make the error of an address for which Hadoop gives no client: as a rule its package is not there.

    Args:
        address: of a folder.
        words: of the exception, in a line.
        hadoop: version of Hadoop that Spark has.
    """
    scheme = address.partition("://")[0]
    missing = _NO_CLASS.search(words)
    message, expected, near = words, "", None
    if missing is not None or "No FileSystem for scheme" in words:
        package = CLIENTS.get(scheme)
        # Which of several packages has a client that Hadoop itself does not know, only its maker says.
        is_known = package is not None and (missing is not None or scheme != "gs")
        name = f"org.apache.hadoop:{package}:{hadoop}" if is_known else "GROUP:NAME:VERSION"
        message = f"Spark's package has no client for {scheme}://"
        if missing is not None:
            message += f", of which the class {missing[1] or missing[2].replace('/', '.')} is missing"
        expected = (
            f"the client's package by --spark-conf spark.jars.packages={name}, "
            "or by spark-defaults.conf in the folder SPARK_CONF_DIR"
        )
        if package is None and (found := nearest(scheme, _SCHEMES)):
            expected, near = "", f"{found}{address.removeprefix(scheme)}"
    return run_error(address, message, expected, near=near)
