"""Tells what resumes a suspended Job that no queue holds."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from shoal.api.workloads import Job
from shoal.cli.missing_pods import pod_of_template
from shoal.sim.remedies import fits_beside
from shoal.sim.rounds import Rounds
from shoal.store.replicas import KUEUE_QUEUE_LABEL
from shoal.views.explanation import HELP, Explanation
from shoal.views.remedies import Remedy
from shoal.views.remedy_commands import field_command

_FACT = f"spec.suspend is true, and the job has no label {KUEUE_QUEUE_LABEL}: no queue resumes it."


def tell_resumption(
    explanation: Explanation, job: object, rounds: Rounds, go_on: Callable[[], bool], *, is_living: bool
) -> None:
    """The change is a remedy only if the pods of the job then find places beside all others."""
    if not isinstance(job, Job) or not job.spec.suspend or job.metadata.labels.get(KUEUE_QUEUE_LABEL):
        return
    key = job.metadata.key
    pod = pod_of_template(job)
    pods = structs.replace(job, spec=structs.replace(job.spec, suspend=False)).pods_at_once()
    if pod is None or not pods or not fits_beside(rounds, pod, pods, go_on):
        explanation.add(HELP, _FACT)
        return
    commands = (field_command("job", key, {"suspend": False}),) if is_living else ()
    remedy = Remedy(f"Set spec.suspend of job {key} to false.", commands)
    explanation.remedies = [remedy]
    explanation.add(HELP, _FACT, *remedy.lines())
