"""A case about MIG configuration as it is in the files, without its expectation."""

from __future__ import annotations

from typing import Any

import msgspec


class ProfileLine(msgspec.Struct):
    profile: str
    max: int


class GpuLine(msgspec.Struct, rename="camel"):
    index: int = 0
    device: str = ""
    subsystem: str | None = None
    model: str = ""
    mig_capable: bool = True
    mig_enabled: bool = False
    instances: dict[str, int] = {}
    reset_needed_for_mode_change: bool = False
    profiles: list[ProfileLine] = []


class Case(msgspec.Struct, rename="camel"):
    id: str
    stage: str
    document: str = ""
    selected: str | None = None
    mode_only: bool = False
    gpus: list[GpuLine] = []
    gpu: GpuLine | None = None
    filter: Any = None
    instances: dict[str, int] = {}
    value: str | None = None
    profile: str = ""
