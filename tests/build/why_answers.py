"""The answers of `shoal why` on files, and objects as they are read from a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file
from shoal.cli.main import main

GROUP = "scheduling.k8s.io/group-name"
H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/mig.capable": "true",
    "nvidia.com/mig.strategy": "mixed",
}
SLICE = "nvidia.com/mig-3g.40gb"
TAINT = {"key": "dedicated", "value": "research", "effect": "NoSchedule"}


class WhyAnswers:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys

    def __call__(self, name: str, *objects: Object) -> str:
        return " ".join(self.text(name, *objects).split())

    def text(self, name: str, *objects: Object) -> str:
        assert main(["why", "-f", as_file(self._folder, *objects), name]) == 0
        return self._capsys.readouterr().out

    def document(self, name: str, *objects: Object) -> dict[str, Any]:
        assert main(["why", "-f", as_file(self._folder, *objects), name, "-o", "json"]) == 0
        found: dict[str, Any] = json.loads(self._capsys.readouterr().out)
        return found

    def commands(self, name: str, *objects: Object) -> list[str]:
        """Of all remedies, in order."""
        return [command for remedy in self.document(name, *objects)["remedies"] for command in remedy["commands"]]

    def help(self, name: str, *objects: Object) -> str:
        chapters = self.document(name, *objects)["chapters"]
        return " ".join(line for each in chapters if each["heading"] == "would help" for line in each["lines"])


def of_cluster(obj: Object) -> Object:
    """As it would be read from a cluster, so that commands can act on it."""
    obj["metadata"]["uid"] = f"uid-{obj['metadata']['name']}"
    return obj


def owned(obj: Object, kind: str, name: str) -> Object:
    reference = {"apiVersion": "batch/v1", "kind": kind, "name": name, "uid": "1", "controller": True}
    obj["metadata"]["ownerReferences"] = [reference]
    return obj
