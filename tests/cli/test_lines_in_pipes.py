"""No line that a command writes into a pipe ends in blanks, which text tools would have to remove."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.main import main

ROOT = Path(__file__).parents[2]
MANIFESTS = "examples/manifests"
COMMANDS = (
    f"decide -f {MANIFESTS}/why-they-wait.yaml",
    f"decide -f {MANIFESTS}/queues.yaml",
    f"decide -f {MANIFESTS}/make-room.yaml",
    f"queue -f {MANIFESTS}/queues.yaml",
    f"queue diff -f {MANIFESTS}/queues.yaml -f {MANIFESTS}/queues-proposed.yaml",
    f"top -f {MANIFESTS}/why-they-wait.yaml",
    f"get pods -f {MANIFESTS}/why-they-wait.yaml",
    f"get gangs -f {MANIFESTS}/gang-in-one-rack.yaml",
    f"get workloads -f {MANIFESTS}/queues.yaml",
    f"why -f {MANIFESTS}/queues.yaml language/pretrain",
    f"pack -f {MANIFESTS}/why-they-wait.yaml",
    "pack --nodes openb_nodes.csv --pods openb_pods.csv --policy BestFit",
    "lint examples/advice --fail-on never",
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,64000,262144,8,V100M16\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "p-0,8000,1024,1,1000,,LS,Running,0,1,0\n"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_ends_in_blanks(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "openb_nodes.csv").write_text(NODES)
    (tmp_path / "openb_pods.csv").write_text(PODS)
    monkeypatch.chdir(ROOT)
    words = [str(tmp_path / word) if word.startswith("openb_") else word for word in command.split()]
    assert main(words) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert [line for line in lines if line != line.rstrip()] == []
