"""Runs smoke tests in a namespace of their own, which is deleted afterwards, also after a failure.

Guarantees: no object outside of that namespace is changed. A test that cannot run says why; one that does not end in
time fails with what its pods wait for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from shoal.client.clock import Clock
from shoal.client.ecosystem_kinds import PYTORCH_JOBS
from shoal.client.item import Obj
from shoal.client.kind import DEPLOYMENTS, EVENTS, JOBS, NAMESPACES, NODES, PODS, Kind
from shoal.client.port import Api, Deletion, Patch, Select
from shoal.client.refusals import BusyError, NotFoundError, RefusedError
from shoal.devices.names import NVLINK
from shoal.install.bundle import SMOKE_TEST_IMAGE
from shoal.install.readiness import blocked_pods
from shoal.install.smoke_test import outcome, resource_to_test
from shoal.policy.readiness.all_reduce import all_reduce_outcome
from shoal.policy.readiness.outcomes import Outcome, not_applicable, not_run
from shoal.policy.readiness.smoke_objects import (
    MANAGED_BY,
    NAMESPACE,
    deployment_object,
    indexed_job_object,
    job_object,
    namespace_object,
    pod_object,
    pytorch_job_object,
)
from shoal.policy.readiness.smoke_results import (
    interruption_outcome,
    job_outcome,
    no_pods_outcome,
    scaling_outcome,
    stuck_outcome,
    training_outcome,
    unseen_words,
    vectoradd_outcome,
)
from shoal.units.errors import TemporaryError, UserError, Where
from shoal.units.numbers import whole_of
from shoal.wiring.smoke_tests.inference_load import InferenceLoad, inference_outcome

_EVERY_S = 1.0
_GPU = "nvidia.com/gpu"
_NVLINK_GB_S = 300.0
_MOST_LOG_BYTES = 1 << 20
_INFERENCE = "inference-load"
_FINAL = ("Complete", "Succeeded", "Failed")
"""The last conditions of Jobs and of PyTorchJobs."""


class PodLogs(Protocol):
    """Requests for what is no object: `Connection.ask`."""

    async def ask(self, method: str, path: str, query: dict[str, str]) -> bytes: ...


class SmokeSettings(msgspec.Struct, frozen=True):
    timeout_s: float = 300.0
    replicas: int = 2
    nccl_image: str = ""
    pytorch_image: str = ""
    """Starts a training of its own."""
    inference: InferenceLoad | None = None


class NotInTimeError(Exception):
    pass


class SmokeTests:
    def __init__(self, api: Api, logs: PodLogs, clock: Clock, settings: SmokeSettings) -> None:
        self._api = api
        self._logs = logs
        self._clock = clock
        self._settings = settings

    async def run(self, names: Sequence[str], report: Callable[[str], None]) -> dict[str, Outcome]:
        """The result of each test, by its name. Raises UserError if the namespace belongs to others."""
        tests: dict[str, Callable[[str], Awaitable[Outcome]]] = {
            "vectoradd": self._vectoradd,
            "distributed-job": self._distributed_job,
            "all-reduce": self._all_reduce,
            "pytorch-single": lambda resource: self._pytorch(resource, 0),
            "pytorch-multi": lambda resource: self._pytorch(resource, self._settings.replicas - 1 or 1),
            "spot-interruption": self._interruption,
            "scale-from-zero": self._scaling,
        }
        nodes = [item.obj() for item in (await self._api.list(NODES)).items]
        resource = resource_to_test((node.get("status") or {}).get("allocatable") or {} for node in nodes)
        done: dict[str, Outcome] = {}
        if _INFERENCE in names:
            report(f"smoke test {_INFERENCE}")
            done[_INFERENCE] = await self._inference()
        names = [name for name in names if name != _INFERENCE]
        if not resource:
            return {**done, **{name: not_applicable("no node has a GPU") for name in names}}
        if not names:
            return done
        await self._open()
        try:
            for name in names:
                report(f"smoke test {name}")
                done[name] = await self._one(tests[name], resource)
        finally:
            await self._close(report)
        return done

    async def _one(self, test: Callable[[str], Awaitable[Outcome]], resource: str) -> Outcome:
        begun = self._clock.seconds()
        try:
            try:
                return await test(resource)
            except NotInTimeError as error:
                pods = await self._pods()
                reason = next(iter(blocked_pods(pods, "smoke test")), "") or unseen_words(pods)
                return stuck_outcome(str(error), self._clock.seconds() - begun, reason)
        except RefusedError as error:
            return not_run(f"the cluster refuses it: {error}")
        except TemporaryError as error:
            return not_run(f"the API server did not answer: {error}")

    async def _open(self) -> None:
        """Raises UserError if the namespace exists: of an interrupted run, or of others."""
        try:
            there = (await self._api.get(NAMESPACES, "", NAMESPACE)).obj()
        except NotFoundError:
            await self._api.create(NAMESPACES, namespace_object())
            return
        is_own = MANAGED_BY.items() <= (there["metadata"].get("labels") or {}).items()
        fix = "the namespace of the tests is used by others"
        if is_own:
            is_ending = "deletionTimestamp" in there["metadata"]
            fix = "wait until it is gone" if is_ending else f"kubectl delete namespace {NAMESPACE}"
        raise UserError("exists already", where=Where(obj=f"Namespace {NAMESPACE}"), fix=fix)

    async def _close(self, report: Callable[[str], None]) -> None:
        try:
            await self._api.delete(NAMESPACES, "", NAMESPACE, Deletion(policy="Background"))
        except TemporaryError as error:
            report(f"the namespace of the tests is not deleted: {error}; kubectl delete namespace {NAMESPACE}")

    async def _vectoradd(self, resource: str) -> Outcome:
        pod = await self._ended_pod(pod_object("vectoradd", SMOKE_TEST_IMAGE, {resource: 1}))
        node = (await self._api.get(NODES, "", _node_of(pod))).obj()
        return vectoradd_outcome(node, resource, outcome(pod) or "", await self._log("vectoradd"))

    async def _distributed_job(self, resource: str) -> Outcome:
        """As many pods as replicas, at once."""
        name, wanted = "distributed", self._settings.replicas
        await self._api.create(JOBS, indexed_job_object(name, SMOKE_TEST_IMAGE, resource, wanted))
        chosen = Select(labels=f"batch.kubernetes.io/job-name={name}")
        await self._ended_job(f"not all {wanted} pods of the Job ended", JOBS, name)
        pods = [item.obj() for item in (await self._api.list(PODS, NAMESPACE, chosen)).items]
        results = [(_node_of(pod), fault) for pod in pods if (fault := outcome(pod)) is not None]
        return job_outcome(results, wanted, resource)

    async def _pytorch(self, resource: str, workers: int) -> Outcome:
        image, name = self._settings.pytorch_image, f"pytorch-{workers + 1}"
        test = "pytorch-multi" if workers else "pytorch-single"
        if not image:
            command = f"shoal check --smoke {test} --pytorch-image IMAGE"
            return not_run("needs an image that starts a training with PyTorch", command)
        if PYTORCH_JOBS not in {one.kind for one in await self._api.served()}:
            return not_run("the cluster has no kind PyTorchJob: the training operator is not installed")
        begun = self._clock.seconds()
        await self._api.create(PYTORCH_JOBS, pytorch_job_object(name, image, resource, workers))
        chosen = Select(labels=f"training.kubeflow.org/job-name={name}")
        try:
            job = await self._ended_job(f"the PyTorchJob of {workers + 1} pods did not end", PYTORCH_JOBS, name)
        except NotInTimeError:
            if (await self._api.list(PODS, NAMESPACE, chosen)).items:
                raise
            job = (await self._api.get(PYTORCH_JOBS, NAMESPACE, name)).obj()
            return no_pods_outcome(job, await self._events("PyTorchJob", name), self._clock.seconds() - begun)
        return training_outcome(_final_condition(job), workers + 1, self._clock.seconds() - begun)

    async def _inference(self) -> Outcome:
        load = self._settings.inference
        if load is None:
            command = f"shoal check --smoke {_INFERENCE} --inference-service NAMESPACE/NAME:PORT/PATH"
            return not_run("needs the Service of a model server", command)
        return await inference_outcome(self._logs, self._clock, load)

    async def _all_reduce(self, _: str) -> Outcome:
        image = self._settings.nccl_image
        if not image:
            command = "shoal check --smoke all-reduce --nccl-image IMAGE"
            return not_run("needs an image with all_reduce_perf of nccl-tests", command)
        nodes = [item.obj() for item in (await self._api.list(NODES)).items]
        gpus, node = max(((_gpus(node), node) for node in nodes), key=lambda pair: pair[0])
        if gpus < 2:
            return not_applicable("no node has two whole GPUs")
        program = ("all_reduce_perf", "-b", "8", "-e", "1G", "-f", "2", "-g", str(gpus))
        pod = await self._ended_pod(pod_object("all-reduce", image, {_GPU: gpus}, program))
        has_nvlink = (node["metadata"].get("labels") or {}).get(NVLINK) == "true"
        where = f"{gpus} GPUs of node {_node_of(pod)}"
        return all_reduce_outcome(await self._log("all-reduce"), _NVLINK_GB_S if has_nvlink else 0, where)

    async def _interruption(self, resource: str) -> Outcome:
        """A cloud takes a spot node back: its pods are evicted, and the job gets another."""
        name = "interruption"
        await self._api.create(JOBS, job_object(name, resource))
        chosen = Select(labels=f"batch.kubernetes.io/job-name={name}")
        first = await self._until("the job did not start", lambda: self._running(chosen, set()))
        await self._api.post(PODS, NAMESPACE, first["metadata"]["name"], "eviction", _EVICTION)
        begun = self._clock.seconds()
        gone = {first["metadata"]["uid"]}
        second = await self._until("the job did not run again", lambda: self._running(chosen, gone))
        return interruption_outcome(_node_of(first), _node_of(second), self._clock.seconds() - begun)

    async def _scaling(self, resource: str) -> Outcome:
        name, replicas = "scaling", self._settings.replicas
        await self._api.create(DEPLOYMENTS, deployment_object(name, resource))
        begun = self._clock.seconds()
        await self._api.patch(DEPLOYMENTS, NAMESPACE, name, Patch("merge", {"spec": {"replicas": replicas}}))

        async def is_ready() -> Obj | None:
            found = (await self._api.get(DEPLOYMENTS, NAMESPACE, name)).obj()
            return found if (found.get("status") or {}).get("readyReplicas", 0) >= replicas else None

        await self._until(f"not all {replicas} replicas were ready", is_ready)
        return scaling_outcome(replicas, self._clock.seconds() - begun)

    async def _ended_job(self, what: str, kind: Kind, name: str) -> Obj:
        async def ended() -> Obj | None:
            job = (await self._api.get(kind, NAMESPACE, name)).obj()
            return job if _final_condition(job) else None

        return await self._until(what, ended)

    async def _ended_pod(self, pod: Obj) -> Obj:
        name = pod["metadata"]["name"]
        await self._api.create(PODS, pod)

        async def ended() -> Obj | None:
            found = (await self._api.get(PODS, NAMESPACE, name)).obj()
            return None if outcome(found) is None else found

        return await self._until(f"pod {name} did not end", ended)

    async def _running(self, chosen: Select, gone: set[str]) -> Obj | None:
        for item in (await self._api.list(PODS, NAMESPACE, chosen)).items:
            pod = item.obj()
            is_running = (pod.get("status") or {}).get("phase") == "Running"
            if is_running and pod["metadata"]["uid"] not in gone and "deletionTimestamp" not in pod["metadata"]:
                return pod
        return None

    async def _until(self, what: str, look: Callable[[], Awaitable[Obj | None]]) -> Obj:
        """Raises NotInTimeError."""
        ends = self._clock.seconds() + self._settings.timeout_s
        while True:
            try:
                found = await look()
            except TemporaryError:
                found = None
            if found is not None:
                return found
            if self._clock.seconds() >= ends:
                raise NotInTimeError(what)
            await self._clock.sleep(_EVERY_S)

    async def _pods(self) -> list[Obj]:
        return [item.obj() for item in (await self._api.list(PODS, NAMESPACE)).items]

    async def _events(self, kind: str, name: str) -> list[Obj]:
        """About an object of the tests; empty if they cannot be read."""
        try:
            found = [item.obj() for item in (await self._api.list(EVENTS, NAMESPACE)).items]
        except RefusedError:
            return []
        about = ((event, event.get("involvedObject") or {}) for event in found)
        return [event for event, subject in about if (subject.get("kind"), subject.get("name")) == (kind, name)]

    async def _log(self, pod: str) -> str:
        """Empty if it cannot be read."""
        try:
            path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/log"
            data = await self._logs.ask("GET", path, {"limitBytes": str(_MOST_LOG_BYTES)})
        except (RefusedError, BusyError):
            return ""
        return data.decode("utf-8", "replace")


_EVICTION: Obj = {"apiVersion": "policy/v1", "kind": "Eviction"}


def _node_of(pod: Obj) -> str:
    return str((pod.get("spec") or {}).get("nodeName", ""))


def _final_condition(job: Obj) -> str:
    """The type of the condition with which a job ended; empty while it has not."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((one["type"] for one in conditions if one["type"] in _FINAL and one["status"] == "True"), "")


def _gpus(node: Obj) -> int:
    return whole_of(str(((node.get("status") or {}).get("allocatable") or {}).get(_GPU, 0))) or 0
