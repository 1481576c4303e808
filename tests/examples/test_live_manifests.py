"""Every file of `examples/live` comes on its header's `shoal up` to what its header waits for, with a real kubectl."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from build.kubectl import kubectl_binary
from build.living_cluster import living

ROOT = Path(__file__).parents[2]
MANIFESTS = sorted((ROOT / "examples" / "live").iterdir())
_PATIENCE_S = 120


def test_there_are_examples_of_queues() -> None:
    assert MANIFESTS


@pytest.mark.slow
@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: str(path.name))
def test_a_living_cluster_does_what_its_header_says(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    start, *commands = [shlex.split(line) for line in re.findall(r"^#   \$ (.+)$", text, re.MULTILINE)]
    assert start[:3] == ["shoal", "up", "--nodes"]
    assert ["wait" in command for command in commands[1:]], "the header says what to wait for"
    with living(tmp_path, start[3], "--memory", *start[4:]) as server:
        environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig)}
        for command in commands:
            assert command[0] == "kubectl"
            done = subprocess.run(
                [kubectl_binary(), *command[1:]],
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=_PATIENCE_S,
                check=False,
            )
            assert done.returncode == 0, done.stderr
