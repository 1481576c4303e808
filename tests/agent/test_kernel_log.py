"""Xids are read from the kernel log, by the address of their GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.agent.health.kernel_log import logged_xids, of_address

LOG = """\
[    1.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05
[  812.4] NVRM: Xid (PCI:0000:53:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[  813.0] NVRM: Xid (PCI:0000:64:00.0): 31, pid=1234, name=python, Ch 00000008
[  814.0] NVRM: Xid (PCI:zz): 31
[  815.0] NVRM: Xid (PCI:0000:53:00): 99999, too long
"""


def test_xids_are_found_in_their_order_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_text(LOG)
    found = logged_xids(path)
    assert [(one.pci, one.xid) for one in found] == [("0000:53:00", 79), ("0000:64:00", 31)]
    assert found[0].line.startswith("NVRM: Xid (PCI:0000:53:00): 79, pid")


@pytest.mark.parametrize("address", ["00000000:53:00.0", "0000:53:00.0", "0000:53:00"])
def test_those_of_a_gpu_are_chosen_by_its_address(tmp_path: Path, address: str) -> None:
    path = tmp_path / "kern.log"
    path.write_text(LOG)
    assert [one.xid for one in of_address(address, logged_xids(path))] == [79]


def test_of_a_long_log_the_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    line = "[1.0] NVRM: Xid (PCI:0000:53:00): {}, text\n"
    path.write_text(line.format(13) + "x" * (5 * 2**20) + "\n" + line.format(48))
    assert [one.xid for one in logged_xids(path)] == [48]


def test_bytes_that_are_no_text_are_no_error(tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_bytes(b"\xff\xfe\n[1.0] NVRM: Xid (PCI:0000:53:00): 48, text \xff\n")
    assert [one.xid for one in logged_xids(path)] == [48]


def test_a_log_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        logged_xids(tmp_path / "absent")
