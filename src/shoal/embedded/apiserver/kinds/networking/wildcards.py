"""Checks wildcard host names, which match one label below a domain: `*.example.com`."""

from __future__ import annotations

import re

from shoal.api.names import SUBDOMAIN

_PATTERN = rf"\*\.{SUBDOMAIN.pattern}"
_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', "
    f"regex used for validation is '{_PATTERN}')"
)


def wildcard_faults(name: str) -> tuple[str, ...]:
    found = []
    if len(name.encode()) > 253:
        found.append("must be no more than 253 bytes")
    if not re.fullmatch(_PATTERN, name):
        found.append(_WORDS)
    return tuple(found)
