"""Records which machines have joined the cluster, their certificates, and the certificates of removed machines.

A removed machine still has a certificate that is valid by its dates; its serial number is refused until it expires.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from shoal.embedded.apiserver.private_files import make_private_folder, write_private
from shoal.units.errors import UserError, Where

FILE = "joined-nodes.json"
_MOST_CERTIFICATES = 8


class JoinedNode(msgspec.Struct, frozen=True, rename="camel"):
    key: str
    """The hash of the key with which it joined: the same machine may repeat its request."""
    certificates: dict[str, float]
    """When each of its certificates expires, by serial number."""


class _Stored(msgspec.Struct, frozen=True, rename="camel"):
    nodes: dict[str, JoinedNode] = {}
    removed: dict[str, float] = {}
    """When certificates of removed nodes expire, by serial number."""


class JoinedNodes:
    """`folder`: where the cluster's keys are; None: nothing joins, and nothing is stored."""

    def __init__(self, folder: Path | None) -> None:
        """Raises UserError for a damaged file."""
        self._file = None if folder is None else folder / FILE
        self._stored = _Stored() if self._file is None else _read(self._file)

    def has_any(self) -> bool:
        return bool(self._stored.nodes)

    def get(self, name: str) -> JoinedNode | None:
        return self._stored.nodes.get(name)

    def is_removed(self, serial: str) -> bool:
        return serial in self._stored.removed

    def has_too_many(self, name: str, now_s: float) -> bool:
        """Whether the node has so many valid certificates that it gets no further one: each of them is recorded."""
        node = self._stored.nodes.get(name)
        return node is not None and len(_unexpired(node.certificates, now_s)) >= _MOST_CERTIFICATES

    def issue(self, name: str, key: str, certificate: tuple[str, float], now_s: float) -> None:
        """Record a certificate, by serial number and expiry. Returns when it is stored."""
        serial, expires_s = certificate
        before = self._stored.nodes.get(name)
        kept = {} if before is None else _unexpired(before.certificates, now_s)
        node = JoinedNode(key if before is None else before.key, {**kept, serial: expires_s})
        self._write(_Stored({**self._stored.nodes, name: node}, self._stored.removed))

    def remove(self, name: str, now_s: float) -> bool:
        """Refuse the certificates of a node from now on. Whether there was one of that name."""
        node = self._stored.nodes.get(name)
        if node is None:
            return False
        removed = _unexpired(self._stored.removed, now_s)
        others = {one: node for one, node in self._stored.nodes.items() if one != name}
        self._write(_Stored(others, {**removed, **node.certificates}))
        return True

    def _write(self, stored: _Stored) -> None:
        if self._file is not None:
            make_private_folder(self._file.parent)
            write_private(self._file, msgspec.json.encode(stored))
        self._stored = stored


def has_joined_nodes(folder: Path) -> bool:
    """Whether machines have joined the cluster with these keys."""
    return JoinedNodes(folder).has_any()


def _unexpired(certificates: dict[str, float], now_s: float) -> dict[str, float]:
    return {serial: ends_s for serial, ends_s in certificates.items() if ends_s > now_s}


def _read(file: Path) -> _Stored:
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Stored)
    except FileNotFoundError:
        return _Stored()
    except msgspec.DecodeError:
        fix = "restore it: without it, removed machines could come back"
        raise UserError("the file of joined machines is damaged", where=Where(str(file)), fix=fix) from None
