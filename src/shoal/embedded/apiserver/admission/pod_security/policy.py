"""Parses the Pod Security labels of a namespace: levels to enforce, to audit and to warn about.

Labels that cannot be read are refused when they are written. Where they are set nevertheless, enforcing falls back to
`restricted` and the others to `privileged`, so that a typing error never opens a namespace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from shoal.embedded.apiserver.admission.pod_security.levels import LATEST, LEVELS, Level, Standard
from shoal.embedded.apiserver.field_errors import FieldError, bad_value

_PREFIX = "pod-security.kubernetes.io/"
_MODES = ("enforce", "audit", "warn")
_LABELS = tuple(f"{_PREFIX}{mode}{end}" for mode in _MODES for end in ("", "-version"))
_VERSION = re.compile(r"v1\.(0|[1-9][0-9]*)")


class PodSecurityPolicy(NamedTuple):
    enforce: Standard = Standard()
    audit: Standard = Standard()
    warn: Standard = Standard()


def policy_of(labels: Mapping[str, str] | None) -> tuple[PodSecurityPolicy, tuple[FieldError, ...]]:
    if not labels:
        return _NOTHING
    given = tuple(labels.get(label) for label in _LABELS)
    return _NOTHING if given == _UNLABELLED else _read(given)


@lru_cache(maxsize=512)
def _read(given: tuple[str | None, ...]) -> tuple[PodSecurityPolicy, tuple[FieldError, ...]]:
    faults: list[FieldError] = []
    standards = []
    for at, mode in enumerate(_MODES):
        level = _level(mode, given[2 * at], faults)
        minor = _minor(mode, given[2 * at + 1], faults)
        standards.append(Standard(level, minor))
    return PodSecurityPolicy(*standards), tuple(faults)


def _level(mode: str, text: str | None, faults: list[FieldError]) -> Level:
    if text is None:
        return "privileged"
    for level in LEVELS:
        if text == level:
            return level
    faults.append(_fault(mode, text, f"must be one of {', '.join(LEVELS)}"))
    return "restricted" if mode == "enforce" else "privileged"


def _minor(mode: str, text: str | None, faults: list[FieldError]) -> int:
    if text is None or text == "latest":
        return LATEST
    match = _VERSION.fullmatch(text)
    if match is None:
        faults.append(_fault(f"{mode}-version", text, 'must be "latest" or "v1.x"'))
        return LATEST
    return int(match[1])


def _fault(label: str, text: str, words: str) -> FieldError:
    return bad_value(f"metadata.labels[{_PREFIX}{label}]", text, words)


_NOTHING: tuple[PodSecurityPolicy, tuple[FieldError, ...]] = (PodSecurityPolicy(), ())
_UNLABELLED = (None,) * len(_LABELS)
