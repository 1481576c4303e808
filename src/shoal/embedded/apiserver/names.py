"""Checks names, with Kubernetes' messages.

The rules are those of `shoal.api.names`, which tells people in its own way; here clients compare texts.
"""

from __future__ import annotations

import re

from shoal.api.names import LABEL, SUBDOMAIN

LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    f"'{LABEL.pattern}')"
)
LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{LABEL_1035.pattern}')"
)
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{SUBDOMAIN.pattern}')"
)


def _fault(name: str, is_prefix: bool, rule: re.Pattern[str], longest: int, words: str) -> str:
    tried = name[:-1] + "a" if is_prefix and name.endswith("-") else name
    if len(tried.encode()) > longest:
        return f"must be no more than {longest} bytes"
    if rule.fullmatch(tried):
        return ""
    return "must not contain dots" if rule is LABEL and SUBDOMAIN.fullmatch(tried) else words


def subdomain_fault(name: str, is_prefix: bool = False) -> str:
    return _fault(name, is_prefix, SUBDOMAIN, 253, SUBDOMAIN_WORDS)


def label_fault(name: str, is_prefix: bool = False) -> str:
    return _fault(name, is_prefix, LABEL, 63, LABEL_WORDS)


def label_1035_fault(name: str, is_prefix: bool = False) -> str:
    return _fault(name, is_prefix, LABEL_1035, 63, LABEL_1035_WORDS)


def path_segment_fault(name: str, is_prefix: bool = False) -> str:  # noqa: ARG001 - prefixes are spelled the same
    """Names of RBAC objects: any path segment."""
    if name in (".", ".."):
        return f"may not be '{name}'"
    for piece in ("/", "%"):
        if piece in name:
            return f"may not contain '{piece}'"
    return ""
