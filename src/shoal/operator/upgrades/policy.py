"""Parses `driver.upgradePolicy` of a ClusterPolicy or an NVIDIADriver, as it is written: the API server adds defaults.

What NVIDIA's operator finds out in the middle of a pass, such as a selector that is not one, is refused here with the
place of the field. No pass is decided with such a policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.selector_text import parse_label_selector
from shoal.api.selectors import Selector
from shoal.operator.upgrades.states import SKIP_DRAIN_LABEL
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.int_or_percent import amount_of

VALIDATION_PODS = "app=nvidia-operator-validator"
_DELETION = ("podDeletion", "gpuPodDeletion")
"""The field of the custom resource, and its name in the documentation."""
_MOST_DIGITS = 9


class PodRemoval(msgspec.Struct, frozen=True):
    """How pods are evicted: `drain` or `podDeletion`."""

    is_enabled: bool = False
    is_forced: bool = False
    """Also pods without a controller."""
    pod_selector: str = ""
    timeout_s: int = 0
    """0: without a limit."""
    deletes_empty_dirs: bool = False


class UpgradePolicy(msgspec.Struct, frozen=True):
    is_automatic: bool = False
    max_parallel: int = 0
    """0: without a limit."""
    max_unavailable: int | str | None = None
    """A number of nodes, or a percentage of all nodes, rounded up; None: without a limit."""
    drain: PodRemoval = PodRemoval()
    pod_deletion: PodRemoval = PodRemoval()
    jobs: Selector | None = None
    """The pods whose end is awaited; None: no wait."""
    jobs_timeout_s: int = 0
    """0: without a limit."""

    def most_unavailable(self, nodes: int) -> int:
        return nodes if self.max_unavailable is None else amount_of(self.max_unavailable, nodes, up=True)


class UpgradeOptions(msgspec.Struct, frozen=True):
    """What the operator is configured for, apart from the policy."""

    deletes_pods: bool = False
    """Pods with GPUs are evicted before the drain."""
    validates: bool = False
    """A node with a new driver is validated before pods are scheduled to it."""
    validation_pods: Selector = parse_label_selector(VALIDATION_PODS)
    stops_at_failure: bool = False
    """No further node starts while the upgrade of one has failed; else failed nodes only use up places."""
    least_lost_work_first: bool = False
    """Nodes start in the order of the work that their drain would lose; else in the order of the list."""


def parse_upgrade_policy(written: Mapping[str, Any] | None, where: Where) -> UpgradePolicy:
    """Raises `UserError`. Without a policy nothing is upgraded automatically."""
    if written is None:
        return UpgradePolicy()
    jobs = _object(written, "waitForCompletion", where)
    at_jobs = where.below("waitForCompletion")
    selector = _text(jobs, "podSelector", at_jobs)
    deletion = next((name for name in _DELETION if written.get(name) is not None), _DELETION[0])
    return UpgradePolicy(
        is_automatic=_flag(written, "autoUpgrade", where),
        max_parallel=_count(written, "maxParallelUpgrades", where),
        max_unavailable=_unavailable(written.get("maxUnavailable"), where.below("maxUnavailable")),
        drain=_removal(_object(written, "drain", where), where.below("drain")),
        pod_deletion=_removal(_object(written, deletion, where), where.below(deletion)),
        jobs=_selector(selector, at_jobs) if selector else None,
        jobs_timeout_s=_count(jobs, "timeoutSeconds", at_jobs),
    )


def drain_selector(policy: UpgradePolicy) -> Selector:
    """The pods that a drain evicts: a label of a pod excludes it."""
    texts = (policy.drain.pod_selector, f"{SKIP_DRAIN_LABEL}!=true")
    return parse_label_selector(",".join(text for text in texts if text))


def _removal(written: Mapping[str, Any], where: Where) -> PodRemoval:
    selector = _text(written, "podSelector", where)
    _selector(selector, where)
    return PodRemoval(
        is_enabled=_flag(written, "enable", where),
        is_forced=_flag(written, "force", where),
        pod_selector=selector,
        timeout_s=_count(written, "timeoutSeconds", where),
        deletes_empty_dirs=_flag(written, "deleteEmptyDir", where),
    )


def _selector(text: str, where: Where) -> Selector:
    try:
        return parse_label_selector(text)
    except UserError as error:
        raise error.at(where.below("podSelector")) from error


def _unavailable(written: Any, where: Where) -> int | str | None:
    if written is None or (isinstance(written, int) and not isinstance(written, bool) and written >= 0):
        return written
    if isinstance(written, str) and _is_percentage(written):
        return written
    shown = excerpt(written) if isinstance(written, str) else written
    what = f"{shown} is neither a number of nodes nor a percentage"
    raise UserError(what, where=where, fix='write e.g. 2 or "25%"')


def _is_percentage(text: str) -> bool:
    digits = text.removesuffix("%")
    return digits != text and digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS


def _object(written: Mapping[str, Any], name: str, where: Where) -> Mapping[str, Any]:
    found = written.get(name)
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        raise UserError("must be an object", where=where.below(name))
    return found


def _flag(written: Mapping[str, Any], name: str, where: Where) -> bool:
    found = written.get(name)
    if not isinstance(found, bool | None):
        raise UserError("must be true or false", where=where.below(name))
    return bool(found)


def _count(written: Mapping[str, Any], name: str, where: Where) -> int:
    found = written.get(name)
    if found is None:
        return 0
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UserError("must be a whole number, 0 or more", where=where.below(name))
    return found


def _text(written: Mapping[str, Any], name: str, where: Where) -> str:
    found = written.get(name)
    if not isinstance(found, str | None):
        raise UserError("must be a text", where=where.below(name))
    return found or ""
