"""Whom a certificate, or a request for one, names: the same for who approves, who signs and who authenticates.

The last common name counts, as Go reads it and so every other component of Kubernetes does. A subject with more than
one names different users to different readers; nothing that acts for a node is given to such a subject.
"""

from __future__ import annotations

from cryptography import x509
from cryptography.x509.oid import NameOID


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
