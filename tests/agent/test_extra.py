"""A missing package of the extra is named with the command that installs it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from shoal.agent.extra import extra_named
from shoal.units.errors import UserError


def test_a_missing_package_of_the_extra_is_a_user_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(UserError, match="the Python package grpcio is not installed") as refused, extra_named():
        import_module("grpc")
    assert "shoal[agent]" in refused.value.fix


def test_another_missing_module_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError), extra_named():
        import_module("no_such_module_of_any_package")
