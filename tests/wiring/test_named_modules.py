"""Modules and functions that `wiring` imports by name when they are needed: a rename that misses a name fails here."""

from __future__ import annotations

from importlib import import_module

import pytest

from shoal.wiring.controllers import CONTROLLERS
from shoal.wiring.shoal import BESIDE, LATER

_MAKERS = sorted({*BESIDE.values(), *(row.maker for row in CONTROLLERS.values())})


@pytest.mark.parametrize("module", LATER)
def test_a_module_that_is_imported_late_exists(module: str) -> None:
    import_module(f"shoal.controllers.{module}")


@pytest.mark.parametrize("maker", _MAKERS)
def test_a_controller_that_is_named_can_be_made(maker: str) -> None:
    module, _, function = maker.partition(":")
    assert callable(getattr(import_module(f"shoal.controllers.{module}"), function))
