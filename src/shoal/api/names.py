"""Checks object names, label keys and label values as Kubernetes does.

Each check returns what is wrong, or nothing: the caller knows the field and raises. Results are cached,
because a fleet repeats the same few hundred keys a million times.
"""

from __future__ import annotations

import re

from shoal.units.bounded_cache import kept

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
"""One part of a DNS name, as RFC 1123 has it."""
SUBDOMAIN = re.compile(rf"{LABEL.pattern}(\.{LABEL.pattern})*")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

_MAX_SUBDOMAIN = 253
_MAX_NAME = 63


@kept(most=16384)
def label_key_fault(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if slash and not _is_subdomain(prefix):
        return "the part before / must be a lowercase DNS name of at most 253 characters"
    if not name:
        return "name part must be non-empty"
    if len(name) > _MAX_NAME:
        return f"name part must be no more than {_MAX_NAME} characters"
    if not _NAME.fullmatch(name):
        return "name part must be letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    return ""


@kept(most=16384)
def label_value_fault(value: str) -> str:
    if len(value) > _MAX_NAME:
        return f"must be no more than {_MAX_NAME} characters"
    if value and not _NAME.fullmatch(value):
        return "must be letters, digits, '-', '_' or '.', and start and end with a letter or digit"
    return ""


def object_name_fault(name: str) -> str:
    """The rule for nodes, pods and nearly everything else a scheduler reads."""
    if not _is_subdomain(name):
        return "a name is lowercase letters, digits, '-' and '.', starting and ending with a letter or digit"
    return ""


def _is_subdomain(text: str) -> bool:
    return len(text) <= _MAX_SUBDOMAIN and SUBDOMAIN.fullmatch(text) is not None
