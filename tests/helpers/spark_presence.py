"""Whether there is what the extra `whatif` needs, Spark above all, and which tests can't be without it."""

from __future__ import annotations

import importlib.util
import os

import pytest

OF_SPARK = ("whatif", "test_docs_whatif.py", "test_texts.py", "cli/test_errors.py", "fuzz/test_entry_points.py")
"""Tests that can't be imported without. Elsewhere than here they would be errors."""


def has_spark() -> bool:
    """Whether tests of what-if can be run; always where all is installed that is tested."""
    modules = ("pyspark", "py4j", "pyarrow", "lxml")
    return "AMQP_MESH_TEST_INSTALLED" in os.environ or all(importlib.util.find_spec(name) for name in modules)


needs_spark = pytest.mark.skipif(not has_spark(), reason="needs the extra `whatif`")
