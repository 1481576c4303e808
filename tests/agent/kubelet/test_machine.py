"""The machine's cores, memory and system are read from its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.kubelet.machine import MachineRoot, cpu_list, this_machine


@pytest.mark.parametrize(("text", "cores"), [("0-3\n", 4), ("0", 1), ("0-1,4-7,9", 7), ("", 0)])
def test_lists_of_processors_are_counted(text: str, cores: int) -> None:
    assert cpu_list(text) == cores


def test_the_files_of_a_machine_become_the_resources_of_a_node(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemTotal:        8388608 kB\nMemFree: 1 kB\n",
        "proc/sys/kernel/osrelease": "6.1.0\n",
        "sys/devices/system/cpu/online": "0-15\n",
        "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12"\n',
        "etc/machine-id": "abc\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    found = this_machine(tmp_path, MachineRoot(tmp_path / "proc", tmp_path / "sys", tmp_path / "etc"), name="lab")

    assert (found.name, found.cores, found.memory_bytes) == ("lab", 16, 8 * 2**30)
    assert (found.kernel, found.system, found.machine_id) == ("6.1.0", "Debian GNU/Linux 12", "abc")
    assert found.capacity()["memory"] == "8388608Ki"
    assert found.allocatable()["cpu"] == "15900m"
    assert int(found.allocatable()["ephemeral-storage"].removesuffix("Ki")) <= found.disk_bytes * 9 // 10 // 1024
    assert found.allocatable()["memory"] == f"{8388608 - 256 * 1024}Ki"
