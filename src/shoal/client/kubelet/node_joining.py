"""Defines how a machine joins the cluster of `shoal up` as a node: paths, messages, and the hash of the authority.

The machine reads the certificate of the cluster's authority, compares its hash with the one of the join command, and
only then sends its token, to a server with a certificate of that authority. It gets a client certificate for one node.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import datetime, timedelta

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shoal.api.names import object_name_fault

PROTOCOL = 1
"""The version of these messages. Both sides must have the same."""
ROOT = "/shoal/join"
AUTHORITY_PATH, JOIN_PATH = f"{ROOT}/authority", f"{ROOT}/certificate"
_NODES = f"{ROOT}/nodes/"
REMOVED = "NodeRemoved"
"""The reason of a refusal: an administrator removed the node of this certificate."""
OPENING, ENDING = "open", "end"
"""Messages on a connection of a machine: the server takes it into use, and the kubelet has no more to say. Between them
are bytes. The machine does not close a connection itself, so that its last bytes are not lost.
"""
NODE_USER, NODE_GROUP = "system:node:", "system:nodes"
CERTIFICATE_LIFE = timedelta(days=90)
TOKEN = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{32}")
"""The format of join tokens: a public name, and a secret."""
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class JoinRequest(msgspec.Struct, frozen=True, rename="camel"):
    """For the first certificate, or the next one of the same node."""

    node: str
    request: str
    """A certificate signing request, as PEM. The server uses only its key."""
    protocol: int = PROTOCOL
    version: str = ""
    """The version of Shoal, for messages."""


class JoinAnswer(msgspec.Struct, frozen=True, rename="camel"):
    certificate: str
    version: str = ""


def certificate_path(node: str) -> str:
    return f"{_NODES}{node}/certificate"


def connection_path(node: str) -> str:
    return f"{_NODES}{node}/connection"


def node_in(path: str) -> tuple[str, str]:
    """The node of a path and what follows: `certificate` or `connection`; two empty texts for any other path."""
    name, slash, rest = path.removeprefix(_NODES).partition("/") if path.startswith(_NODES) else ("", "", "")
    return (name, rest) if slash and not object_name_fault(name) else ("", "")


def is_of_joining(path: str) -> bool:
    return path == ROOT or path.startswith(f"{ROOT}/")


def authority_hash(certificate: bytes) -> str:
    """The SHA-256 hash of the public key of a certificate (PEM), as kubeadm prints it. Raises ValueError."""
    key = x509.load_pem_x509_certificate(certificate).public_key()
    return f"sha256:{hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()}"


def is_authority(certificate: bytes, wanted: str) -> bool:
    """Whether the certificate has the key with that hash."""
    try:
        return hmac.compare_digest(authority_hash(certificate).encode(), wanted.encode())
    except ValueError:
        return False


def hash_fault(text: str) -> str:
    """What is wrong with a hash that a user wrote; empty if nothing."""
    return "" if _HASH.fullmatch(text) else "is not a hash: it has the form sha256:, and 64 digits from 0 to f"


def protocol_fault(protocol: int, version: str, server_version: str) -> str:
    """Why a machine with another version cannot be a node of this server; empty if it can."""
    if protocol == PROTOCOL:
        return ""
    which = "newer" if protocol > PROTOCOL else "older"
    return (
        f"the machine has a {which} node protocol ({protocol}, Shoal {version or 'unknown'}) than the server "
        f"({PROTOCOL}, Shoal {server_version}); install the same version of Shoal on both"
    )


def renewal_at(certificate: bytes) -> datetime:
    """When a certificate (PEM) is to be replaced: after two thirds of its life."""
    found = x509.load_pem_x509_certificate(certificate)
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    return begins + (ends - begins) * 2 / 3
