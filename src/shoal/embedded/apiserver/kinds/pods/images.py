"""Parses image names to find the default pull policy."""

from __future__ import annotations

import re

from shoal.units.bounded_cache import kept

_PATH = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")


_LONGEST_PATH = 255


@kept(4096)
def pull_policy(image: str) -> str:
    """`Always` for the tag latest, said or meant; a spelling that is no image has no tag."""
    name, _, digest = image.partition("@")
    head, slash, last = name.rpartition("/")
    repository, colon, tag = last.partition(":")
    path = head + slash + repository
    first, _, rest = path.partition("/")
    if rest and ("." in first or ":" in first or first == "localhost"):
        path = rest
    if len(path) > _LONGEST_PATH or not _PATH.fullmatch(path) or (colon and not _TAG.fullmatch(tag)):
        return "IfNotPresent"
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"
