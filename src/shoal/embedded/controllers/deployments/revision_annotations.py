"""Computes the annotations of deployments and their replica sets: the revision, and the size at the last scaling.

`kubectl rollout history` and `undo` read these, and the controller detects by them that a Deployment was scaled.
"""

from __future__ import annotations

from collections.abc import Mapping

from shoal.units.numbers import whole_of

REVISION = "deployment.kubernetes.io/revision"
HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED = "deployment.kubernetes.io/desired-replicas"
GREATEST = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        GREATEST,
    }
)
_LONGEST_HISTORY = 2000


def number(annotations: Mapping[str, str], key: str) -> int:
    return whole_of(annotations.get(key, "")) or 0


def sizes(wanted: int, greatest: int) -> dict[str, str]:
    return {DESIRED: str(wanted), GREATEST: str(greatest)}


def of_new_set(deployment: Mapping[str, str], replica_set: Mapping[str, str], revision: int) -> dict[str, str]:
    """The annotations of the newest ReplicaSet: those of the Deployment, and the revision. After a rollback, they list
    its earlier revisions too.
    """
    made = {**replica_set, **{key: value for key, value in deployment.items() if key not in _NOT_COPIED}}
    before = number(replica_set, REVISION)
    if before >= revision:
        return made
    made[REVISION] = str(revision)
    if REVISION in replica_set:
        past = [one for one in replica_set.get(HISTORY, "").split(",") if one]
        past.append(replica_set[REVISION])
        while len(",".join(past)) > _LONGEST_HISTORY:
            past.pop(0)
        made[HISTORY] = ",".join(past)
    return made
