"""Validates the status of a Job: a finished job stays finished, and its counts do not decrease.

A rule is asked only when what it reads has changed, as in Kubernetes, so that a status that is wrong already can still
be written to; and a write that changes neither conditions nor times costs few comparisons.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from shoal.embedded.apiserver.field_errors import FieldError, bad_value, duplicate, required
from shoal.embedded.apiserver.kinds.complaints import NEGATIVE, Errors, Obj
from shoal.embedded.apiserver.kinds.workloads.indexes import IndexesError, read_indexes, shared_index

_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_LASTING = ("Failed", "Complete", "FailureTarget")
_ENDS = frozenset({"Complete", "Failed"})
_CONDITIONS, _FINISHED = "status.conditions", "finished job"


class _Change(msgspec.Struct, frozen=True):
    spec: Obj
    new: Obj
    old: Obj
    said: frozenset[str]
    """The conditions that are true now."""
    before: frozenset[str]
    """The conditions that were true."""

    def differs(self, *keys: str) -> bool:
        return any(self.new.get(key) != self.old.get(key) for key in keys)

    def turned(self, *conditions: str) -> bool:
        return any((one in self.said) != (one in self.before) for one in conditions)

    @property
    def has_ended(self) -> bool:
        return not self.said.isdisjoint(_ENDS)

    @property
    def just_ended(self) -> bool:
        return self.said.isdisjoint(_ENDS) != self.before.isdisjoint(_ENDS)


def check_job_status(new: Obj, old: Obj) -> Errors:
    status, before = new.get("status") or {}, old.get("status") or {}
    change = _Change(new["spec"], status, before, _true_conditions(status), _true_conditions(before))
    errors: Errors = []
    for key in _COUNTS:
        if (value := status.get(key)) is not None and value < 0:
            errors.append(bad_value(f"status.{key}", value, NEGATIVE))
    if uncounted := status.get("uncountedTerminatedPods"):
        _check_uncounted(uncounted, errors)
    if change.said:
        _check_contradictions(change, errors)
    _check_times(change, errors)
    if change.said:
        _check_forerunners(change, errors)
    if change.has_ended:
        _check_end(change, errors)
    if change.differs("completedIndexes", "failedIndexes"):
        _check_indexes(change, errors)
    _check_pods(change, errors)
    if "SuccessCriteriaMet" in change.said or "Complete" in change.said:
        _check_success(change, errors)
    _check_course(change, errors)
    return errors


def _true_conditions(status: Obj) -> frozenset[str]:
    conditions = status.get("conditions")
    if not conditions:
        return frozenset()
    return frozenset(one.get("type", "") for one in conditions if one.get("status") == "True")


def _check_uncounted(uncounted: Obj, errors: Errors) -> None:
    seen: set[str] = set()
    for key in ("succeeded", "failed"):
        for place, uid in enumerate(uncounted.get(key) or ()):
            path = f"status.uncountedTerminatedPods.{key}[{place}]"
            if not uid:
                errors.append(bad_value(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(duplicate(path, uid))
            seen.add(uid)


def _check_contradictions(change: _Change, errors: Errors) -> None:
    if "Complete" not in change.said:
        return
    if "Failed" in change.said and change.turned("Complete", "Failed"):
        errors.append(_not_together("cannot set Complete=True and Failed=true conditions"))
    if "FailureTarget" in change.said and change.turned("Complete", "FailureTarget"):
        errors.append(_not_together("cannot set Complete=True and FailureTarget=true conditions"))


def _check_forerunners(change: _Change, errors: Errors) -> None:
    """An end is announced before it is reached, because pods may still be ending."""
    said, turned = change.said, change.turned
    if "Failed" in said and "FailureTarget" not in said and turned("Failed", "FailureTarget"):
        words = "cannot set Failed=True condition without the FailureTarget=true condition"
        errors.append(_not_together(words))
    if "Complete" in said and "SuccessCriteriaMet" not in said and turned("Complete", "SuccessCriteriaMet"):
        words = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(_not_together(words))


def _check_success(change: _Change, errors: Errors) -> None:
    succeeds = "SuccessCriteriaMet" in change.said
    if succeeds and "Failed" in change.said:
        errors.append(_not_together("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if succeeds and "FailureTarget" in change.said:
        errors.append(_not_together("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if not succeeds and change.spec.get("successPolicy") is not None:
        words = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_not_together(words))


def _not_together(words: str) -> FieldError:
    """Kubernetes shows no value of conditions."""
    return bad_value(_CONDITIONS, msgspec.UNSET, words)


def _check_times(change: _Change, errors: Errors) -> None:
    ended, started = change.new.get("completionTime"), change.new.get("startTime")
    completed = "Complete" in change.said
    path = "status.completionTime"
    if bool(ended) != completed and (change.turned("Complete") or change.differs("completionTime")):
        if ended:
            words = "cannot set completionTime when there is no Complete=True condition"
            errors.append(bad_value(path, ended, words))
        else:
            errors.append(required(path, "completionTime is required for Complete jobs"))
    if ended and started and change.differs("startTime", "completionTime") and _moment(ended) < _moment(started):
        errors.append(bad_value(path, ended, "completionTime cannot be set before startTime"))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _check_end(change: _Change, errors: Errors) -> None:
    status, ended = change.new, change.just_ended
    if (active := status.get("active") or 0) > 0 and (ended or change.differs("active")):
        errors.append(bad_value("status.active", active, f"active>0 is invalid for {_FINISHED}"))
    if not status.get("startTime") and (ended or change.differs("startTime")):
        errors.append(required("status.startTime", f"startTime is required for {_FINISHED}"))
    uncounted = status.get("uncountedTerminatedPods") or {}
    if any(uncounted.values()) and (ended or change.differs("uncountedTerminatedPods")):
        words = f"uncountedTerminatedPods needs to be empty for {_FINISHED}"
        errors.append(bad_value("status.uncountedTerminatedPods", uncounted, words))


def _check_pods(change: _Change, errors: Errors) -> None:
    status = change.new
    ending, ready = status.get("terminating") or 0, status.get("ready") or 0
    if ending > 0 and change.has_ended and (change.just_ended or change.differs("terminating")):
        errors.append(bad_value("status.terminating", ending, f"terminating>0 is invalid for {_FINISHED}"))
    if ready > (status.get("active") or 0) and change.differs("ready", "active"):
        errors.append(bad_value("status.ready", ready, "cannot set more ready pods than active"))


def _check_indexes(change: _Change, errors: Errors) -> None:
    spec, completions = change.spec, change.spec.get("completions")
    completed, failed = change.new.get("completedIndexes", ""), change.new.get("failedIndexes")
    is_limited = spec.get("backoffLimitPerIndex") is not None
    spans: dict[str, Any] = {}
    if completions is not None:
        if change.differs("completedIndexes"):
            spans["completed"] = _spans("completedIndexes", completed, completions, errors)
        if failed is not None and is_limited and change.differs("failedIndexes"):
            spans["failed"] = _spans("failedIndexes", failed, completions, errors)
    if completed and spec.get("completionMode") != "Indexed" and change.differs("completedIndexes"):
        words = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(bad_value("status.completedIndexes", completed, words))
    if failed is not None and not is_limited and change.differs("failedIndexes"):
        words = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(bad_value("status.failedIndexes", failed, words))
    if completions is None or not failed or not completed or None in spans.values():
        return
    unheard: Errors = []
    done = spans.get("completed") or _spans("completedIndexes", completed, completions, unheard)
    lost = spans.get("failed") or _spans("failedIndexes", failed, completions, unheard)
    both = shared_index(done or [], lost or [])
    if both is not None:
        words = f"failedIndexes and completedIndexes overlap at index: {both}"
        errors.append(bad_value("status.failedIndexes", failed, words))


def _spans(key: str, text: str, completions: int, errors: Errors) -> list[tuple[int, int]] | None:
    try:
        return read_indexes(text, completions)
    except IndexesError as fault:
        errors.append(bad_value(f"status.{key}", text, f"error parsing {key}: {fault}"))
        return None


def _check_course(change: _Change, errors: Errors) -> None:
    """What may not be taken back."""
    new, old, spec = change.new, change.old, change.spec
    for condition in _LASTING:
        if condition in change.before and condition not in change.said:
            errors.append(_not_together(f"cannot disable the terminal {condition}=True condition"))
    if (new.get("failed") or 0) < (old.get("failed") or 0):
        errors.append(bad_value("status.failed", new.get("failed") or 0, "cannot decrease the failed counter"))
    can_shrink = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if not can_shrink and (new.get("succeeded") or 0) < (old.get("succeeded") or 0):
        words = "cannot decrease the succeeded counter"
        errors.append(bad_value("status.succeeded", new.get("succeeded") or 0, words))
    ended, former = new.get("completionTime"), old.get("completionTime")
    if ended and former and ended != former:
        errors.append(bad_value("status.completionTime", ended, "completionTime cannot be mutated"))
    if old.get("startTime") and change.differs("startTime") and not spec.get("suspend"):
        errors.append(required("status.startTime", "startTime cannot be removed for unsuspended job"))
    if "SuccessCriteriaMet" in change.before and "SuccessCriteriaMet" not in change.said:
        errors.append(_not_together("cannot disable the SuccessCriteriaMet=True condition"))
    if "Complete" in change.before and change.turned("SuccessCriteriaMet") and "SuccessCriteriaMet" in change.said:
        words = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        errors.append(_not_together(words))
