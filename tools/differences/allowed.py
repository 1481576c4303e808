"""Differences that are known and meant: signatures with the reason why they stay, from `allowed.yaml`."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import yaml

FILE = Path(__file__).parent / "allowed.yaml"


class Allowed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    signature: str
    """A regular expression that is searched for in the signature of a difference."""
    reason: str


def read(file: Path = FILE) -> list[Allowed]:
    return msgspec.convert(yaml.safe_load(file.read_text()) or [], list[Allowed])


def reason_for(signature: str, allowed: list[Allowed]) -> str:
    """Why this difference stays, or nothing."""
    return next((one.reason for one in allowed if re.search(one.signature, signature)), "")
