"""Parses what a virtual GPU says about the driver of its host, from its PCI configuration space.

NVIDIA's capability is vendor-specific (9) with the signature `VF`; a list of records follows, each with its number and
length. Record 0 holds version and branch of the host's driver, ten bytes each.
"""

from __future__ import annotations

from shoal.devices.feature_labels import VgpuHost

_FIRST_POINTER, _STATUS, _HAS_LIST = 0x34, 0x06, 0x10
_VENDOR_SPECIFIC = 0x09
_SIGNATURE = b"VF"
_RECORDS, _HEADER, _TEXT = 5, 2, 10
_MOST_CAPABILITIES = 48


def vgpu_host(space: bytes) -> VgpuHost | None:
    """None: no virtual GPU, or too little of the space can be read without privileges."""
    if len(space) <= _FIRST_POINTER or not space[_STATUS] & _HAS_LIST:
        return None
    place = space[_FIRST_POINTER]
    for _ in range(_MOST_CAPABILITIES):
        if not place or place + 2 >= len(space):
            return None
        if space[place] == _VENDOR_SPECIFIC:
            found = _host_of(space[place : place + space[place + 2]])
            if found is not None:
                return found
        place = space[place + 1]
    return None


def _host_of(capability: bytes) -> VgpuHost | None:
    if capability[3:_RECORDS] != _SIGNATURE:
        return None
    place = _RECORDS
    while place + 1 < len(capability):
        number, length = capability[place], capability[place + 1]
        if number == 0:
            texts = capability[place + _HEADER :]
            return VgpuHost(_text(texts[:_TEXT]), _text(texts[_TEXT : 2 * _TEXT]))
        if not length:
            break
        place += length
    return None


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("ascii", "replace").strip()
