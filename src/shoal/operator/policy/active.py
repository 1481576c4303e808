"""Decides which of several ClusterPolicies applies: the oldest of `nvidia.com/v1`.

A ClusterPolicy of `config.openshift.io/v1`, which is in manifests that are often copied, applies if there is none of
the real kind, with a warning.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

GROUP = "nvidia.com"
MISPLACED_GROUP = "config.openshift.io"


class PolicyCandidate(msgspec.Struct, frozen=True):
    name: str
    created: str = ""
    """The creation timestamp, as the API writes it."""
    group: str = GROUP
    uid: str = ""

    @property
    def rank(self) -> tuple[bool, str, str]:
        return (self.group != GROUP, self.created, self.name)


def ranked(candidates: Iterable[PolicyCandidate]) -> list[PolicyCandidate]:
    """The one that applies, and then the ignored ones."""
    return sorted(candidates, key=lambda one: one.rank)


def misplaced_warning(name: str) -> str:
    return (
        f"ClusterPolicy {name} of {MISPLACED_GROUP}/v1 is applied as if it were of {GROUP}/v1; change its apiVersion "
        f"to {GROUP}/v1 and its name to cluster-policy"
    )
