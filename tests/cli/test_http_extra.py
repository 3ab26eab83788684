"""A router whose settings have `http` where the extra of that name is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.core.errors import LocalError
from router.http_extra import http_service

SAID = "the setting `http` needs starlette, which is not installed: pip install '.[http]'"


@pytest.fixture
def without_starlette(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each == "router.http_service" or each.startswith("starlette")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "router.management.http_app", raising=False)
    monkeypatch.setitem(sys.modules, "starlette", None)


@pytest.mark.usefixtures("without_starlette")
def test_config_check_says_what_is_not_installed_when_it_reads_files_too(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    file.write_text("router:\n  id: A\n  http: {port: 9672}\n", encoding="utf-8")
    assert CliRunner().invoke(main, ["config", "check", str(file)]).exit_code == 0  # it may run on another machine
    result = CliRunner().invoke(main, ["config", "check", "--files", str(file)])
    assert result.exit_code == 1
    assert f"{file}:3: error: router.http: {SAID}" in result.output


@pytest.mark.usefixtures("without_starlette")
def test_what_serves_http_is_missing_in_words() -> None:
    with pytest.raises(LocalError) as caught:
        http_service()
    assert str(caught.value).startswith(SAID)
