"""Reads the subjects of certificates and of requests for them, for approval, signing and authentication alike.

The last common name counts, as Go reads it and so every other component of Kubernetes does. A subject with more than
one names different users to different readers; nothing that acts for a node is given to such a subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.x509.oid import NameOID

_UNREADABLE = (x509.InvalidVersion, x509.UnsupportedGeneralNameType, x509.DuplicateExtension, UnsupportedAlgorithm)
"""What the library raises beside ValueError for invalid input."""


@contextmanager
def reading() -> Iterator[None]:
    """Around whatever reads a request or a certificate: what cannot be read is a ValueError."""
    try:
        yield
    except _UNREADABLE as error:
        raise ValueError(str(error)) from error


def common_name(subject: x509.Name) -> str:
    """Empty if the subject has none."""
    names = _values(subject, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def has_one_common_name(subject: x509.Name) -> bool:
    return len(_values(subject, NameOID.COMMON_NAME)) == 1


def organizations(subject: x509.Name) -> tuple[str, ...]:
    return tuple(_values(subject, NameOID.ORGANIZATION_NAME))


def _values(subject: x509.Name, kind: x509.ObjectIdentifier) -> list[str]:
    # Go leaves out values that are not text.
    return [one.value for one in subject.get_attributes_for_oid(kind) if isinstance(one.value, str)]
