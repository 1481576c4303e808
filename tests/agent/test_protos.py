"""The committed modules of the kubelet's interfaces are what their definitions give."""

from __future__ import annotations

from tools.protos import outdated


def test_the_generated_modules_are_current() -> None:
    assert outdated() == []
