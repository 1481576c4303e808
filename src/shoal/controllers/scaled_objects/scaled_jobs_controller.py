"""Reconciles ScaledJobs of KEDA: polls the triggers, creates Jobs, deletes finished ones beyond the history."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.api.conditions import Condition
from shoal.api.meta import ObjectMeta
from shoal.api.wire import ApiStruct
from shoal.autoscale.scaled_objects.admission import trigger_fault
from shoal.autoscale.scaled_objects.annotations import PAUSED, is_paused
from shoal.autoscale.scaled_objects.polling import PolledTrigger
from shoal.autoscale.scaled_objects.scaled_jobs import (
    OWNER_LABEL,
    FinishedJob,
    JobCounts,
    JobDemand,
    ScaledJobSpec,
    TriggerDemand,
    job_demand,
    job_of,
    new_jobs,
    surplus_jobs,
)
from shoal.autoscale.scaled_objects.spec import USUAL_POLLING_S
from shoal.autoscale.scaled_objects.trigger_metadata import TriggerError
from shoal.client.context import Context, Controller
from shoal.client.ecosystem_kinds import SCALED_JOBS
from shoal.client.item import Key, Obj
from shoal.client.kind import JOBS, PODS
from shoal.client.owned_pods.pod_view import pod_view
from shoal.client.port import Deletion
from shoal.client.refusals import NotFoundError
from shoal.controllers.scaled_objects.keda_objects import IsRunning, KedaObjects
from shoal.controllers.scaled_objects.trigger_values import TriggerValues

_FAILED = "ScaledJobCheckFailed"
_ENDS = ("Complete", "Failed")
_RUNNING = ("Running", "Succeeded")
_JOB_NAME = "job-name"


class _JobStatus(ApiStruct, frozen=True):
    conditions: tuple[Condition, ...] = ()
    completion_time: str = ""


class _ReadJob(ApiStruct, frozen=True):
    metadata: ObjectMeta
    status: _JobStatus = _JobStatus()

    def end(self) -> Condition | None:
        return next((one for one in self.status.conditions if one.type in _ENDS and one.is_true()), None)


class ScaledJobs:
    def __init__(self, context: Context, values: TriggerValues, keda_runs: IsRunning) -> None:
        self.name = context.name
        self._context = context
        self._values = values
        self._jobs = context.informers.of(JOBS).index("namespace", lambda item: (item.namespace,))
        self._pods = context.informers.of(PODS).index("namespace", lambda item: (item.namespace,))
        self._objects = KedaObjects(context, SCALED_JOBS, keda_runs, self._reconcile)
        self._objects.need(JOBS, PODS)

    async def run(self) -> None:
        await self._objects.run()

    async def _reconcile(self, key: Key, obj: Obj) -> float | None:
        if "deletionTimestamp" in obj["metadata"]:
            return None
        try:
            spec = msgspec.convert(obj.get("spec") or {}, ScaledJobSpec)

            async def pod_spec() -> Obj:
                return (spec.job_target_ref.get("template") or {}).get("spec") or {}

            if fault := trigger_fault(spec.triggers):
                raise TriggerError(fault)
            triggers = await self._values.read(spec.triggers, key, pod_spec, spec.env_source_container_name)
            if not all(one.name for one in triggers):
                raise TriggerError("cpu and memory triggers scale no Jobs")
        except (msgspec.ValidationError, TriggerError) as error:
            self._objects.event(obj, _FAILED, str(error), is_warning=True)
            await self._objects.write(obj, {}, [Condition("Ready", "False", _FAILED, str(error))])
            return float(USUAL_POLLING_S)
        if is_paused({name: text for name, text in _annotations(obj).items() if name == PAUSED}):
            paused = Condition("Paused", "True", "ScaledJobPaused", "ScaledJob is paused")
            await self._objects.write(obj, {}, [paused])
            return float(spec.polling_interval or USUAL_POLLING_S)
        now = self._context.clock.now().replace(microsecond=0)
        polled = [await self._values.poll(one, key[0], now) for one in triggers]
        await self._scaled(key, obj, spec, polled)
        return float(spec.polling_interval or USUAL_POLLING_S)

    async def _scaled(self, key: Key, obj: Obj, spec: ScaledJobSpec, polled: Sequence[PolledTrigger]) -> None:
        demands = [
            TriggerDemand(one.reading.value_milli / 1000, one.trigger.target, one.is_active)
            for one in polled
            if not one.reading.error
        ]
        demand, jobs = job_demand(demands, spec), self._owned(key)
        counts = self._counts(key[0], spec, [one for one in jobs if one.end() is None])
        created = await self._created(obj, spec, new_jobs(spec, demand, counts))
        if created:
            self._objects.event(obj, "KEDAJobsCreated", f"Created {created} jobs")
        await self._cleaned(key[0], spec, jobs)
        fields: Obj = {
            "externalMetricNames": [one.trigger.name for one in polled],
            "triggersTypes": ",".join(dict.fromkeys(one.type for one in spec.triggers)),
        }
        if demand.is_active:
            fields["lastActiveTime"] = self._context.clock.text()
        errors = [one.reading.error for one in polled if one.reading.error]
        for words in errors:
            self._objects.event(obj, "KEDAScalerFailed", words, is_warning=True)
        await self._objects.write(obj, fields, _conditions(demand, errors))

    async def _created(self, obj: Obj, spec: ScaledJobSpec, count: int) -> int:
        for _ in range(count):
            await self._context.api.create(JOBS, job_of(obj, spec))
        return count

    async def _cleaned(self, namespace: str, spec: ScaledJobSpec, jobs: Sequence[_ReadJob]) -> None:
        finished = []
        for job in jobs:
            if (end := job.end()) is not None:
                since = job.status.completion_time or str(end.last_transition_time or "")
                finished.append(FinishedJob(job.metadata.name, end.type == "Failed", since))
        for name in surplus_jobs(finished, spec):
            try:
                await self._context.api.delete(JOBS, namespace, name, Deletion(policy="Background"))
            except NotFoundError:
                continue

    # -- facts ------------------------------------------------------------------------------------------------------

    def _owned(self, key: Key) -> list[_ReadJob]:
        jobs = [item.read(_ReadJob) for item in self._jobs[key[0]]]
        return [one for one in jobs if one.metadata.labels.get(OWNER_LABEL) == key[1]]

    def _counts(self, namespace: str, spec: ScaledJobSpec, running: Sequence[_ReadJob]) -> JobCounts:
        started = self._started(namespace, spec)
        return JobCounts(len(running), sum(one.metadata.name not in started for one in running))

    def _started(self, namespace: str, spec: ScaledJobSpec) -> set[str]:
        """The Jobs that are not pending: a pod runs, or has all conditions that the strategy names."""
        wanted = set(spec.scaling_strategy.pending_pod_conditions)
        found = set()
        for item in self._pods[namespace]:
            pod = pod_view(item)
            true = {one.type for one in pod.status.conditions if one.is_true()}
            if wanted <= true if wanted else pod.status.phase in _RUNNING:
                found.add(pod.metadata.labels.get(_JOB_NAME, ""))
        return found


def _conditions(demand: JobDemand, errors: Sequence[str]) -> list[Condition]:
    words = "ScaledJob is defined correctly and is ready for scaling"
    ready = Condition("Ready", "True", "ScaledJobReady", words)
    if errors and demand.is_active:
        words = "Some triggers defined in ScaledJob are not working correctly"
        ready = Condition("Ready", "Unknown", "PartialTriggerError", words)
    elif errors:
        words = f"Triggers defined in ScaledJob are not working correctly: {errors[0]}"
        ready = Condition("Ready", "False", "TriggerError", words)
    active = Condition("Active", "True", "ScalerActive", "Scaling is performed because triggers are active")
    if not demand.is_active:
        words = "Scaling is not performed because triggers are not active"
        active = Condition("Active", "False", "ScalerNotActive", words)
    paused = Condition("Paused", "False", "ScaledJobUnpaused", "ScaledJob is unpaused")
    return [ready, active, paused]


def _annotations(obj: Obj) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found


def scaled_job_controller(context: Context, values: TriggerValues, keda_runs: IsRunning) -> Controller:
    return ScaledJobs(context, values, keda_runs)
