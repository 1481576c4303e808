"""Converts older or slightly wrong documents of Kueue to the plain object that the typed value is decoded from.

Each reader is named in `kinds.py` for the versions that need it. Where something was translated that a cluster would
refuse or drop, the value keeps the old field, so that `probable_mistakes.py` can tell.
"""

from __future__ import annotations

from typing import Any

Plain = dict[str, Any]

_OLD_TIMEOUT = "5m"


def cluster_queue(raw: Plain) -> Plain:
    """A cohort under its old name in a new document: a cluster drops it, the writer meant it."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or "cohort" not in spec or "cohortName" in spec:
        return raw
    return {**raw, "spec": {**spec, "cohortName": spec["cohort"]}}


def cohort_v1alpha1(raw: Plain) -> Plain:
    """The first version called the parent otherwise."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or "parent" not in spec:
        return raw
    spec = {**spec, "parentName": spec["parent"]}
    return {**raw, "spec": spec}


def priority_class(raw: Plain) -> Plain:
    """The value below `spec`, where it does not belong."""
    spec = raw.get("spec")
    if not isinstance(spec, dict) or "value" not in spec or "value" in raw:
        return raw
    return {**raw, "value": spec["value"]}


def configuration_v1beta1(raw: Plain) -> Plain:
    """Switches that v1beta2 replaced by a section being there, and defaults that it changed."""
    raw = dict(raw)
    wait = raw.get("waitForPodsReady", {})
    if isinstance(wait, dict):
        is_on = wait.get("enable", False)
        defaults = {"timeout": _OLD_TIMEOUT, "recoveryTimeout": "0", "blockAdmission": is_on is True}
        raw["waitForPodsReady"] = {**defaults, **wait, "enable": is_on}
    sharing = raw.get("fairSharing")
    if isinstance(sharing, dict) and sharing.get("enable") is not True:
        del raw["fairSharing"]
    return raw
