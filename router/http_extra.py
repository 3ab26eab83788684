"""The extra `http`: what serves HTTP is loaded only where the settings have it, and may not be installed."""

from __future__ import annotations

import importlib
from types import ModuleType

from router.core.errors import LocalError


def http_service() -> ModuleType:
    """Import `router.http_service`, which takes 0.1 s the first time.

    Raises:
        LocalError: what it needs is not installed.
    """
    try:
        return importlib.import_module("router.http_service")
    except ModuleNotFoundError as error:
        what = f"the setting `http` needs {(error.name or '').partition('.')[0]}, which is not installed"
        raise LocalError(f"{what}: pip install '.[http]' in a clone of its repository") from error
