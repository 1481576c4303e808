"""Reads whether a job has finished, and its final message."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.store.queues.job_parts.part import Ending, Obj, Steps, dig


def conditions(job: Obj) -> dict[str, Obj]:
    """The conditions with status True, by type."""
    found = dig(job, ("status", "conditions"))
    each = found if isinstance(found, list) else []
    return {str(one.get("type")): one for one in each if isinstance(one, dict) and one.get("status") == "True"}


def by_condition(success: str, failure: str = "Failed") -> Callable[[Obj], Ending | None]:
    def ending(job: Obj) -> Ending | None:
        true = conditions(job)
        for kind in (success, failure):
            if kind in true:
                return Ending(str(true[kind].get("message") or ""), kind == success)
        return None

    return ending


def by_phase(phase: Steps, message: Steps, ends: Mapping[str, bool]) -> Callable[[Obj], Ending | None]:
    """`ends`: the final phases, and whether each is a success."""

    def ending(job: Obj) -> Ending | None:
        said = dig(job, phase)
        if said not in ends:
            return None
        return Ending(str(dig(job, message) or ""), ends[said])

    return ending


def ray_job(job: Obj) -> Ending | None:
    """One status field describes the pods of the job, another its success."""
    status = job.get("status") or {}
    if status.get("jobDeploymentStatus") not in ("Complete", "Failed"):
        return None
    return Ending(str(status.get("message") or ""), status.get("jobStatus") == "SUCCEEDED")


def app_wrapper(job: Obj) -> Ending | None:
    phase = dig(job, ("status", "phase"))
    if phase == "Succeeded":
        return Ending("AppWrapper finished successfully", is_success=True)
    if phase == "Failed" and "ResourcesDeployed" not in conditions(job):
        return Ending("AppWrapper failed", is_success=False)
    return None


def never(_job: Obj) -> Ending | None:
    """The kind serves until it is deleted."""
    return None
