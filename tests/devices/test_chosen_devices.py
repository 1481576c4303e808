"""The devices that a pod's annotation chooses; what cannot be read chooses nothing, and is no exception."""

from __future__ import annotations

import pytest

from shoal.devices.chosen_devices import Choice
from shoal.devices.names import OWN_DEVICES


def choice(text: str) -> Choice:
    return Choice({"metadata": {"name": "p", "annotations": {OWN_DEVICES: text}}})


def test_a_number_that_is_not_free_is_named() -> None:
    assert choice("3,0:4").wanted("main", "nvidia.com/gpu", 1, ()) == "3"


@pytest.mark.parametrize(
    "text", ["9" * 5_000, "0:" + "9" * 5_000, "²", "0," * 2_000 + "0", "[" * 100_000, "{" * 5_000, " " * 100_000 + "0"]
)
def test_what_cannot_be_read_or_is_too_long_chooses_nothing(text: str) -> None:
    assert choice(text).wanted("main", "nvidia.com/gpu", 1, ()) is None
