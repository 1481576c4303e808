"""Answers `/version`. The suffix says whose server it is, as distributions of Kubernetes do."""

from __future__ import annotations

from typing import Any

SERVED = ("1.34", "1.35", "1.36")
"""The Kubernetes versions there are schemas for."""


def version_document(kube_version: str) -> dict[str, Any]:
    major, minor = kube_version.split(".")[:2]
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{major}.{minor}.0+shoal",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }
