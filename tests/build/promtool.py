"""Prometheus' own checker over what we write, where it is installed."""

from __future__ import annotations

import shutil
import subprocess

PROMTOOL = shutil.which("promtool")


def faults(text: bytes) -> str:
    """What `promtool check metrics` says of it; empty when it is content."""
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False)
    said = (done.stdout + done.stderr).decode()
    return said or ("" if done.returncode == 0 else f"it ended with {done.returncode}")
