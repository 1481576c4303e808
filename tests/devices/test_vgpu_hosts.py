"""The driver of the host is read from the configuration space of a virtual GPU, and nothing from any other space."""

from __future__ import annotations

import pytest

from shoal.devices.feature_labels import VgpuHost
from shoal.devices.vgpu_hosts import vgpu_host

HOST = b"490.00".ljust(10, b"\0") + b"r490_00".ljust(10, b"\0")


def record(number: int, data: bytes) -> bytes:
    return bytes([number, len(data) + 2]) + data


def space(*capabilities: bytes, status: int = 0x10, signature: bytes = b"VF") -> bytes:
    """Each is the records of a vendor-specific capability."""
    found = bytearray(0x40)
    found[0x06] = status
    found[0x34] = 0x40 if capabilities else 0
    for index, records in enumerate(capabilities):
        length = 5 + len(records)
        following = len(found) + length if index + 1 < len(capabilities) else 0
        found += bytes([0x09, following, length]) + signature + records
    return bytes(found) + bytes(64)


@pytest.mark.parametrize(
    ("given", "host"),
    [
        (space(record(0, HOST)), VgpuHost("490.00", "r490_00")),
        (space(record(3, b"other") + record(0, HOST)), VgpuHost("490.00", "r490_00")),
        (space(record(3, b"other"), record(0, HOST)), VgpuHost("490.00", "r490_00")),
        (space(record(0, HOST), status=0), None),
        (space(record(0, HOST), signature=b"XX"), None),
        (space(record(3, b"other")), None),
        (space(bytes([3, 0])), None),
        (space(), None),
        (space(record(0, HOST))[:64], None),
        (b"", None),
    ],
    ids=[
        "the first record",
        "a later record",
        "a later capability",
        "no list of capabilities",
        "another signature",
        "no record of the host",
        "a record without length",
        "no capability",
        "what unprivileged processes can read",
        "nothing",
    ],
)
def test_the_host_is_read_from_the_capability_of_virtual_gpus(given: bytes, host: VgpuHost | None) -> None:
    assert vgpu_host(given) == host


def test_capabilities_that_point_to_each_other_come_to_an_end() -> None:
    found = bytearray(space(record(3, b"other")))
    found[0x41] = 0x40
    assert vgpu_host(bytes(found)) is None
