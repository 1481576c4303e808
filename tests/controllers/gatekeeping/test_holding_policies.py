"""Jobs and pods that ask for a queue are held at creation, by policies that the server evaluates itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from build.guarded_clusters import QUEUED, default_queue, guarded, has_least, written
from build.virtual_time import virtual
from shoal.api.decode import convert
from shoal.api.kueue import Configuration
from shoal.client.ecosystem_kinds import LEADER_WORKER_SETS, RAY_JOBS
from shoal.client.kind import DEPLOYMENTS, JOBS, NAMESPACES, PODS, Kind
from shoal.client.refusals import InvalidError
from shoal.controllers.gatekeeping.held_kinds import (
    GATE,
    HELD_KINDS,
    MANAGED,
    PARENT,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    SWITCHES,
    HoldingRules,
    holding_rules_of,
)
from shoal.controllers.gatekeeping.holding import held, with_rendezvous
from shoal.controllers.gatekeeping.policies import CHECKING_BINDINGS
from shoal.controllers.gatekeeping.rendezvous import ASKS
from shoal.units.errors import Where

Obj = dict[str, Any]


def _at(obj: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        obj = (obj or {}).get(part)
    return obj


@virtual
async def test_every_kind_of_job_that_names_a_queue_is_created_suspended(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        for switch in SWITCHES:
            for kind in switch.kinds:
                if kind.name == "AppWrapper":
                    continue
                meta: Obj = {"name": "held", "labels": dict(QUEUED)}
                made = await cluster.create(kind, {"metadata": meta, "spec": written(kind)})
                assert _at(made, switch.path) is True, kind
                free = await cluster.create(kind, {"metadata": {"name": "free"}, "spec": written(kind)})
                assert not _at(free, switch.path), kind


@virtual
async def test_whoever_runs_stays_in_its_queue(tmp_path: Path) -> None:
    """Somebody moved a job that ran, and its quota stayed where it was."""
    async with guarded(tmp_path) as cluster:
        await cluster.until(lambda: has_least(cluster, CHECKING_BINDINGS, len(SWITCHES)))
        for switch in SWITCHES:
            kind = switch.kinds[0]
            await cluster.create(kind, {"metadata": {"name": "a", "labels": dict(QUEUED)}, "spec": written(kind)})
            await cluster.patch(kind, "a", _labelled("other"))
            await cluster.patch(kind, "a", _switched(switch.path, is_on=False))
            for queue in ("third", None):
                with pytest.raises(InvalidError, match=r"queue-name\]: field is immutable while the job"):
                    await cluster.patch(kind, "a", _labelled(queue))
            await cluster.patch(kind, "a", {"metadata": {"labels": {"x": "y"}}})
            await cluster.patch(kind, "a", _switched(switch.path, is_on=True))
            await cluster.patch(kind, "a", _labelled("third"))


def _labelled(queue: str | None) -> Obj:
    return {"metadata": {"labels": {QUEUE_LABEL: queue}}}


def _switched(path: tuple[str, ...], *, is_on: bool) -> Obj:
    found: Any = is_on
    for part in reversed(path):
        found = {part: found}
    return dict(found)


@virtual
async def test_a_pod_that_names_a_queue_is_gated_labelled_and_kept_by_a_finalizer(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        gates = [{"name": "example.com/own"}]
        meta: Obj = {"name": "held", "labels": dict(QUEUED), "finalizers": ["example.com/own"]}
        made = await cluster.create(PODS, {"metadata": meta, "spec": {**written(PODS), "schedulingGates": gates}})
        assert made["spec"]["schedulingGates"] == [{"name": "example.com/own"}, {"name": GATE}]
        assert made["metadata"]["labels"] == {QUEUE_LABEL: "team", MANAGED: "true"}
        assert made["metadata"]["finalizers"] == ["example.com/own", MANAGED]
        free = await cluster.create(PODS, {"metadata": {"name": "free"}, "spec": written(PODS)})
        assert "schedulingGates" not in free["spec"]


@virtual
async def test_pods_of_a_job_are_the_job_s_to_hold(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        meta: Obj = {"name": "child", "labels": dict(QUEUED), "ownerReferences": [owner]}
        made = await cluster.create(PODS, {"metadata": meta, "spec": written(PODS)})
        assert "schedulingGates" not in made["spec"]
        other = {**owner, "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow"}
        meta = {"name": "step", "labels": dict(QUEUED), "ownerReferences": [other]}
        step = await cluster.create(PODS, {"metadata": meta, "spec": written(PODS)})
        assert step["spec"]["schedulingGates"] == [{"name": GATE}]


@virtual
async def test_keepers_of_pods_hand_their_queue_and_priority_down(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        labels = {**QUEUED, PRIORITY_LABEL: "high"}
        made = await cluster.create(
            DEPLOYMENTS, {"metadata": {"name": "d", "labels": labels}, "spec": written(DEPLOYMENTS)}
        )
        assert made["spec"]["template"]["metadata"]["labels"] == {"app": "a", **labels}
        assert made["spec"]["template"]["metadata"]["annotations"] == {PARENT: "deployment"}
        group = {"metadata": {"name": "l", "labels": dict(QUEUED)}, "spec": written(LEADER_WORKER_SETS)}
        made = await cluster.create(LEADER_WORKER_SETS, group)
        both = made["spec"]["leaderWorkerTemplate"]
        assert both["leaderTemplate"]["metadata"]["labels"] == QUEUED
        assert both["workerTemplate"]["metadata"]["labels"] == {"app": "a", **QUEUED}


@virtual
async def test_a_queue_given_later_reaches_the_pods_of_a_deployment(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        await cluster.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": written(DEPLOYMENTS)})
        item = await cluster.patch(DEPLOYMENTS, "d", {"metadata": {"labels": dict(QUEUED)}})
        assert item.obj()["spec"]["template"]["metadata"]["labels"] == {"app": "a", **QUEUED}


@virtual
async def test_the_default_queue_of_a_namespace_takes_whoever_names_none(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": "other"}})
        await default_queue(cluster)
        job = await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": written(JOBS)})
        assert job["spec"]["suspend"] is True
        assert job["metadata"]["labels"][QUEUE_LABEL] == "default"
        pod = await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": written(PODS)})
        assert pod["metadata"]["labels"] == {QUEUE_LABEL: "default", MANAGED: "true"}
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
        kept = await cluster.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": written(DEPLOYMENTS)})
        assert kept["spec"]["template"]["metadata"]["labels"][QUEUE_LABEL] == "default"
        elsewhere = await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": written(JOBS)}, "other")
        assert elsewhere["spec"]["suspend"] is False


@virtual
async def test_the_system_s_own_namespaces_are_left_alone(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        meta: Obj = {"name": "j", "labels": dict(QUEUED)}
        job = await cluster.create(JOBS, {"metadata": meta, "spec": written(JOBS)}, "kube-system")
        assert job["spec"]["suspend"] is False


@virtual
async def test_everything_is_held_where_the_rules_say_so(tmp_path: Path) -> None:
    async with guarded(tmp_path, lambda: HoldingRules(everything=True)) as cluster:
        job = await cluster.create(JOBS, {"metadata": {"name": "j"}, "spec": written(JOBS)})
        assert job["spec"]["suspend"] is True
        pod = await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": written(PODS)})
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]


@virtual
async def test_who_asks_for_a_rendezvous_gets_variables_that_refer_to_annotations(tmp_path: Path) -> None:
    async with guarded(tmp_path) as cluster:
        containers: list[Obj] = [
            {"name": "a", "image": "i", "env": [{"name": "RANK", "value": "7"}, {"name": "X", "value": "$(RANK)"}]},
            {"name": "b", "image": "i"},
        ]
        meta: Obj = {"name": "p", "annotations": {ASKS: "true"}}
        made = await cluster.create(PODS, {"metadata": meta, "spec": {"containers": containers}})
        first, second = made["spec"]["containers"]
        assert [one for one in first["env"] if "value" in one] == containers[0]["env"]
        named = {one["name"]: one for one in second["env"]}
        assert next(iter(named)) == "RANK"
        field = named["WORLD_SIZE"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert field == "metadata.annotations['shoal.dev/world-size']"
        assert sum(one["name"] == "RANK" for one in first["env"]) == 1


_SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
_CASES: tuple[tuple[Kind, Obj], ...] = (
    *((kind, {"labels": dict(QUEUED)}) for kind in HELD_KINDS if kind.name != "AppWrapper"),
    *((kind, {}) for kind in (JOBS, PODS, DEPLOYMENTS, RAY_JOBS, LEADER_WORKER_SETS)),
    (PODS, {"annotations": {PARENT: "statefulset", ASKS: "true"}}),
    (PODS, {"labels": dict(QUEUED), "annotations": {PARENT: "statefulset"}, "ownerReferences": [_SET]}),
    (PODS, {"labels": dict(QUEUED), "ownerReferences": [_SET]}),
    (PODS, {"labels": {QUEUE_LABEL: ""}}),
    (JOBS, {"labels": {QUEUE_LABEL: ""}}),
)


@pytest.mark.parametrize("has_default", [False, True])
@virtual
async def test_the_webhook_s_rules_say_what_the_policies_do(tmp_path: Path, has_default: bool) -> None:
    async with guarded(tmp_path, is_started=False) as cluster, guarded(tmp_path / "policies") as watched:
        if has_default:
            await default_queue(watched)
        for number, (kind, meta) in enumerate(_CASES):
            plain = {"metadata": {"name": f"case-{number}", "namespace": "default", **meta}, "spec": written(kind)}
            held_plain = held(plain, (kind.group, kind.name), HoldingRules(), lambda: has_default)
            expected = await cluster.create(kind, with_rendezvous(held_plain) if kind == PODS else held_plain)
            found = await watched.create(kind, plain)
            assert _shown(found) == _shown(expected), (kind, meta)


def _shown(obj: Obj) -> Obj:
    """Without what differs between any two creations."""
    meta = {name: obj["metadata"].get(name) for name in ("name", "labels", "annotations", "finalizers")}
    spec = {name: value for name, value in obj["spec"].items() if name not in ("selector", "volumes")}
    text = msgspec.json.encode(spec, order="sorted").decode()
    uid = obj["metadata"]["uid"]
    meta["labels"] = {name: value for name, value in (meta["labels"] or {}).items() if value != uid}
    return {"metadata": meta, "spec": text.replace(uid, "UID").split("kube-api-access")[0]}


@virtual
async def test_the_configuration_says_whose_jobs_are_held(tmp_path: Path) -> None:
    chosen = {"managedJobsNamespaceSelector": {"matchLabels": {"team": "a"}}}
    rules = holding_rules_of(convert(chosen, Configuration, Where()))
    async with guarded(tmp_path, lambda: rules) as cluster:
        for name, labels in (("in", {"team": "a"}), ("out", {})):
            await cluster.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
            meta: Obj = {"name": "j", "labels": dict(QUEUED)}
            job = await cluster.create(JOBS, {"metadata": meta, "spec": written(JOBS)}, name)
            assert job["spec"]["suspend"] is (name == "in")
