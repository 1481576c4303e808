"""The versions of Kubernetes on which Shoal runs."""

from __future__ import annotations

import re

OLDEST_KUBERNETES, NEWEST_KUBERNETES = "1.34", "1.36"
"""The oldest has the present version of resource claims."""
_MINOR = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(?![0-9])")


def is_older(version: str) -> bool:
    """Than the oldest that is supported; False for a version in another form."""
    found = _numbers(version)
    return found is not None and found < (_numbers(OLDEST_KUBERNETES) or found)


def unsupported(version: str) -> str:
    """Why Shoal may not work on a cluster of this version; empty if it does, or if the version is in another form."""
    found = _numbers(version)
    if is_older(version):
        return (
            f"Kubernetes {version} is older than {OLDEST_KUBERNETES}, the oldest version that Shoal supports; resource "
            "claims and some decisions do not work there"
        )
    if found is not None and found > (_numbers(NEWEST_KUBERNETES) or found):
        return f"Shoal was not tested with Kubernetes {version}; the newest version that was is {NEWEST_KUBERNETES}"
    return ""


def _numbers(version: str) -> tuple[int, int] | None:
    found = _MINOR.match(version)
    return None if found is None else (int(found[1]), int(found[2]))
