"""Stores what a machine needs as a node of a cluster that it joined: server, authority, key and certificate.

The key and the certificate are in one file, which is replaced whole, so that they belong together after a crash. The
key of the first request is stored before the request, so that a repeated request is known as that of the same machine.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from shoal.agent.kubelet.private_files import write_private
from shoal.client import certificates
from shoal.client.http.access import Access
from shoal.units.errors import BugError, UserError, Where

_CLUSTER, _AUTHORITY, _FIRST_KEY, _PAIR, _LOCK = "cluster.json", "ca.crt", "first.key", "node.pem", "lock"


class JoinedCluster(msgspec.Struct, frozen=True):
    server: str
    """`https://192.168.1.20:6443`"""
    node: str


class NodeIdentity:
    """`folder`: of this machine's state. It is created by `hold`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pods = folder / "pods"

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the one process of this folder: two would run the same pods. Raises UserError."""
        where = Where(str(self.folder))
        try:
            self.folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            self.folder.chmod(0o700)
            descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            words = f"this folder cannot be used: {error.strerror or error}"
            raise UserError(words, where=where, fix="choose another with --state") from None
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                fix = "end it first, or choose another folder with --state"
                raise UserError("another `shoal join` runs with this folder", where=where, fix=fix) from None
            yield
        finally:
            os.close(descriptor)

    def cluster(self) -> JoinedCluster | None:
        """None: this machine has joined no cluster. Raises UserError for a damaged file."""
        file = self.folder / _CLUSTER
        try:
            return msgspec.json.decode(file.read_bytes(), type=JoinedCluster)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError:
            fix = "delete it, and join again with a new token"
            raise UserError("the file is damaged", where=Where(str(file)), fix=fix) from None

    def first_key(self) -> bytes:
        """The key of the first request (PEM), which is created once."""
        file = self.folder / _FIRST_KEY
        try:
            return file.read_bytes()
        except FileNotFoundError:
            made = certificates.new_key()
            write_private(file, made)
            return made

    def join(self, cluster: JoinedCluster, authority: bytes, certificate: bytes, key: bytes) -> None:
        """Store the identity. The description of the cluster comes last: with it, the machine has joined."""
        write_private(self.folder / _AUTHORITY, authority)
        self.replace(certificate, key)
        write_private(self.folder / _CLUSTER, msgspec.json.encode(cluster))

    def move(self, server: str) -> JoinedCluster:
        """Store a new address of the same cluster."""
        cluster = self.cluster()
        if cluster is None:
            raise BugError("a machine that has joined no cluster has no server")
        moved = msgspec.structs.replace(cluster, server=server)
        write_private(self.folder / _CLUSTER, msgspec.json.encode(moved))
        return moved

    def replace(self, certificate: bytes, key: bytes) -> None:
        write_private(self.folder / _PAIR, certificate.rstrip() + b"\n" + key)

    def leave(self) -> None:
        """Forget the cluster and the credentials."""
        for name in (_CLUSTER, _AUTHORITY, _PAIR, _FIRST_KEY):
            (self.folder / name).unlink(missing_ok=True)

    def certificate(self) -> bytes:
        """The certificate (PEM), with its key behind it."""
        return (self.folder / _PAIR).read_bytes()

    def authority(self) -> str:
        return (self.folder / _AUTHORITY).read_text()

    def access(self, cluster: JoinedCluster) -> Access:
        """The certificate is read again when it is renewed."""
        pair = self.folder / _PAIR
        return Access(
            cluster.server,
            str(self.folder),
            authority=self.authority(),
            certificate=pair.read_bytes(),
            key=pair.read_bytes(),
            certificate_file=pair,
            key_file=pair,
        )
