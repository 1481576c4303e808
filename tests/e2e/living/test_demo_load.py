"""The load of `shoal up --demo` shows why pods and workloads wait, soon after the start."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

_SHOAL = (sys.executable, "-m", "shoal")
_REASONS = {"NodeAffinityMismatch", "Insufficient", "ExceedsMaxQuota"}


def _codes(kubeconfig: str, kind: str) -> set[str]:
    command = [*_SHOAL, "get", kind, "-A", "-o", "json", "--kubeconfig", kubeconfig]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return {str(item.get("code", "")) for item in json.loads(done.stdout)["items"]}


@pytest.mark.slow
def test_within_a_minute_the_demo_has_work_that_waits_for_three_different_reasons(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path)}
    command = [*_SHOAL, "up", "--demo", "--no-dashboard", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        kubeconfig = process.stdout.readline().strip().removeprefix("export KUBECONFIG=")
        found: set[str] = set()
        try:
            for line in process.stdout:
                waiting = re.search(r"(\d+) waiting", line)
                if waiting is not None and int(waiting[1]) >= len(_REASONS):
                    found = _codes(kubeconfig, "pods") | _codes(kubeconfig, "workloads")
                    break
        finally:
            process.send_signal(signal.SIGINT)
            process.stdout.read()
    assert found >= _REASONS
