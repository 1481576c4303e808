"""Admission reviews: which rules warn and which refuse, by the labels of the namespace and the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from build.ruled_pods import GPU, container, deployment, pod
from shoal.policy import kinds
from shoal.policy.admission_rules.checks import findings
from shoal.policy.admission_rules.modes import LABEL_PREFIX, MODE_LABEL, RuleModes
from shoal.policy.admission_rules.reviews import reviewed
from shoal.policy.advice import Obj
from shoal.policy.object_set import ObjectSet

EQUAL = "GPU requests must equal limits"
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "gpus", "namespace": "team"},
    "spec": {"hard": {f"requests.{GPU}": "4"}},
}


def _review(obj: Obj, before: Obj | None = None) -> Obj:
    kind = {"group": "", "version": "v1", "kind": obj["kind"]}
    request = {"uid": "u", "kind": kind, "namespace": "team", "operation": "CREATE", "object": obj}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return {**review, "request": {**request, **({} if before is None else {"oldObject": before})}}


def _answer(
    obj: Obj,
    labels: dict[str, str] | None = None,
    modes: RuleModes | None = None,
    *others: Obj,
    **more: Any,
) -> Obj:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": labels or {}}}
    context = ObjectSet([namespace, *others])
    answer = reviewed(_review(obj, more.get("before")), context, modes or RuleModes(), has_policies=False)
    assert answer["response"]["uid"] == "u"
    found: Obj = answer["response"]
    return found


def test_a_pod_that_keeps_the_rules_is_admitted_without_a_warning() -> None:
    kept = pod(container(image="registry.example/train:1", resources=_sized()))
    assert _answer(kept, {MODE_LABEL: "enforce"}) == {"uid": "u", "allowed": True}


def _sized() -> Obj:
    return {"limits": {GPU: "1", "memory": "1Gi"}, "requests": {GPU: "1", "memory": "1Gi"}}


@pytest.mark.parametrize(
    ("labels", "modes", "mode"),
    [
        ({}, RuleModes(default="off"), "off"),
        ({}, RuleModes(), "warn"),
        ({}, RuleModes(default="enforce"), "enforce"),
        ({}, RuleModes(rules={"UnequalGpus": "enforce"}), "enforce"),
        ({MODE_LABEL: "off"}, RuleModes(default="enforce"), "off"),
        ({MODE_LABEL: "enforce"}, RuleModes(default="off"), "enforce"),
        ({MODE_LABEL: "strict"}, RuleModes(default="enforce"), "off"),
        ({f"{LABEL_PREFIX}UnequalGpus": "warn"}, RuleModes(default="enforce"), "warn"),
        ({f"{LABEL_PREFIX}UnequalGpus": "enforce", MODE_LABEL: "off"}, RuleModes(default="off"), "enforce"),
        ({MODE_LABEL: "enforce"}, RuleModes(default="enforce", excluded=("team",)), "off"),
    ],
)
def test_the_most_specific_setting_decides_what_follows(labels: dict[str, str], modes: RuleModes, mode: str) -> None:
    unequal = pod(container(resources={"requests": {GPU: "1", "memory": "1Gi"}, "limits": {GPU: "2"}}))
    answer = _answer(unequal, labels, modes)
    assert answer["allowed"] is (mode != "enforce")
    assert any(EQUAL in each for each in answer.get("warnings", ())) is (mode == "warn")
    if mode == "enforce":
        assert answer["status"]["message"].startswith(f"{EQUAL} (SHL-351 UnequalGpus: spec.containers[0].resources")


def test_a_workload_that_its_quota_can_never_admit_is_refused() -> None:
    large = deployment(pod(container(8, resources={"limits": {GPU: "8"}})))
    answer = _answer(large, {MODE_LABEL: "enforce"}, None, QUOTA)
    assert "8 of nvidia.com/gpu, and the ResourceQuota gpus allows 4 in all" in answer["status"]["message"]
    several = deployment(pod(container(2, resources={"limits": {GPU: "2"}})))
    several["spec"]["replicas"] = 3
    answer = _answer(several, {MODE_LABEL: "enforce"}, None, QUOTA)
    assert answer["allowed"] is True
    assert any("3 pods with 2 of nvidia.com/gpu each" in each for each in answer["warnings"])
    scoped: Obj = {**QUOTA, "spec": {"hard": {f"requests.{GPU}": "4"}, "scopes": ["BestEffort"]}}
    assert _answer(large, {MODE_LABEL: "enforce"}, None, scoped)["allowed"] is True


def test_a_reference_to_an_object_that_may_come_later_is_refused_only_where_its_rule_is_named() -> None:
    unknown = deployment(pod(nodeSelector={"nvidia.com/gpu.presnt": "true"}))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"nvidia.com/gpu.present": "true"}}}
    answer = _answer(unknown, {MODE_LABEL: "enforce"}, None, node)
    assert answer["allowed"] is True
    assert any("UnknownNodeLabel" in each for each in answer["warnings"])
    named = {f"{LABEL_PREFIX}UnknownNodeLabel": "enforce"}
    assert "no node has the label" in _answer(unknown, named, None, node)["status"]["message"]
    modes = RuleModes(rules={"UnknownNodeLabel": "enforce"})
    assert _answer(unknown, {}, modes, node)["allowed"] is False


def test_an_update_that_leaves_the_spec_alone_and_objects_of_controllers_are_admitted() -> None:
    bad = deployment(pod(tolerations=[]))
    assert _answer(bad, {MODE_LABEL: "enforce"}, before=bad) == {"uid": "u", "allowed": True}
    owned = pod(tolerations=[])
    owned["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "uid": "1", "controller": True}]
    assert _answer(owned, {MODE_LABEL: "enforce"}) == {"uid": "u", "allowed": True}


def test_many_warnings_are_counted_and_long_ones_cut() -> None:
    many = pod(*(container(env=[{"name": "API_TOKEN", "value": "s" * 400}], name=f"c{at}") for at in range(12)))
    refusal = _answer(many, {f"{LABEL_PREFIX}PlainSecret": "enforce"})["status"]["message"]
    assert refusal.endswith("and 2 more: shoal lint shows all")
    warnings = _answer(many)["warnings"]
    assert len(warnings) == 11
    assert "more: shoal lint shows all" in warnings[-1]
    assert all(len(each) <= 256 for each in warnings)


def _naming(**fields: Any) -> Obj:
    return pod({"name": "main", "image": "registry.example/train:1", **fields.pop("container", {})}, **fields)


_CONFIG = {"configMap": {"name": "settings"}}
NAMED: dict[str, tuple[Obj, str, str]] = {
    "a volume": (_naming(volumes=[{"name": "v", **_CONFIG}]), "MissingConfigMap", "spec.volumes[0]"),
    "a projected volume": (
        _naming(volumes=[{"name": "v", "projected": {"sources": [_CONFIG]}}]),
        "MissingConfigMap",
        "spec.volumes[0].projected.sources[0]",
    ),
    "all variables": (
        _naming(container={"envFrom": [{"configMapRef": {"name": "settings"}}]}),
        "MissingConfigMap",
        "spec.containers[0].envFrom[0]",
    ),
    "a variable": (
        _naming(container={"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]}),
        "MissingConfigMap",
        "spec.containers[0].env[0].valueFrom",
    ),
    "a claim": (
        _naming(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]),
        "MissingPersistentVolumeClaim",
        "spec.volumes[0]",
    ),
    "a ServiceAccount": (_naming(serviceAccountName="bot"), "MissingServiceAccount", "spec.serviceAccountName"),
    "a PriorityClass": (_naming(priorityClassName="high"), "UnknownPriorityClass", "spec.priorityClassName"),
}
_KNOWN = (kinds.CONFIG_MAP, kinds.VOLUME_CLAIM, kinds.SERVICE_ACCOUNT, kinds.PRIORITY_CLASS, kinds.LOCAL_QUEUE)


def _missing(obj: Obj, *others: Obj, modes: RuleModes | None = None) -> list[tuple[str, str, str]]:
    context = ObjectSet(others, _KNOWN)
    found = findings(obj, context, modes or RuleModes(default="enforce"))
    return [(each.rule, each.field, each.mode) for each in found if each.rule.startswith(("Miss", "NoSuch", "Unknown"))]


@pytest.mark.parametrize("name", NAMED)
def test_an_object_that_a_new_pod_names_and_that_is_missing_is_warned_of(name: str) -> None:
    obj, rule, field = NAMED[name]
    assert _missing(obj) == [(rule, field, "warn")]
    assert _missing(obj, modes=RuleModes(rules={rule: "enforce"})) == [(rule, field, "enforce")]
    template = deployment(obj)
    assert _missing(template) == [(rule, field.replace("spec", "spec.template.spec", 1), "warn")]


@pytest.mark.parametrize("name", NAMED)
def test_an_object_that_a_new_pod_names_and_that_exists_is_not_warned_of(name: str) -> None:
    there = [
        {"apiVersion": "v1", "kind": kind, "metadata": {"name": called, "namespace": "team"}}
        for kind, called in (("ConfigMap", "settings"), ("PersistentVolumeClaim", "data"), ("ServiceAccount", "bot"))
    ]
    there.append({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}})
    assert _missing(NAMED[name][0], *there) == []


def test_what_a_pod_may_do_without_is_not_warned_of() -> None:
    optional = {"configMap": {"name": "settings", "optional": True}}
    assert _missing(_naming(volumes=[{"name": "v", **optional}])) == []
    assert _missing(_naming(serviceAccountName="default", priorityClassName="system-node-critical")) == []
    assert _missing(_naming(volumes=[{"name": "v", "secret": {"secretName": "s"}}])) == []


def test_a_job_in_a_queue_that_does_not_exist_is_warned_of_when_it_is_created() -> None:
    job = {**deployment(pod()), "apiVersion": "batch/v1", "kind": "Job"}
    job["metadata"] = {"name": "j", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "team-b"}}
    assert _missing(job) == [("NoSuchLocalQueue", "metadata.labels[kueue.x-k8s.io/queue-name]", "warn")]


def test_a_warning_about_a_queue_names_no_other_queue_of_the_namespace() -> None:
    """Who may create a pod may not be allowed to list queues."""
    job = {**deployment(pod()), "apiVersion": "batch/v1", "kind": "Job"}
    job["metadata"] = {"name": "j", "namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "team-b"}}
    metadata = {"name": "acquisition", "namespace": "team"}
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": metadata}
    found = list(findings(job, ObjectSet([queue], _KNOWN), RuleModes()))
    (about,) = [each for each in found if each.rule == "NoSuchLocalQueue"]
    assert "acquisition" not in about.text
    assert about.text == next(
        each.text for each in findings(job, ObjectSet([], _KNOWN), RuleModes()) if "401" in each.id
    )


def _serving(replicas: int, gpus: int = 8, image: str = "registry.example/serve:1") -> Obj:
    made = deployment(pod(container(gpus, image=image)))
    return {**made, "spec": {**made["spec"], "replicas": replicas}}


def _training(*, suspend: bool) -> Obj:
    template = {"spec": {"restartPolicy": "Never", "containers": [container(8)]}}
    meta = {"name": "train", "namespace": "team"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "spec": {"suspend": suspend, "template": template},
    }


SPENT = {
    "apiVersion": "config.shoal.dev/v1alpha1",
    "kind": "BudgetReport",
    "metadata": {"name": "shoal-budgets"},
    "period": "2026-11",
    "computedAt": "2026-11-27T12:00:00Z",
    "resetsAt": "2026-12-01T00:00:00Z",
    "budgets": [
        {"kind": "namespace", "name": "team", "perMonth": "1", "spent": "2", "forecast": "2", "enforced": "spent"}
    ],
}


@pytest.mark.parametrize(
    ("before", "obj", "is_allowed"),
    [
        pytest.param(_serving(4), _serving(0), True, id="scaled to 0"),
        pytest.param(_serving(4), _serving(2), True, id="scaled down"),
        pytest.param(_serving(4), _serving(4, image="registry.example/serve:2"), True, id="another image"),
        pytest.param(_serving(4), _serving(4, gpus=7), True, id="fewer GPUs"),
        pytest.param(_training(suspend=False), _training(suspend=True), True, id="suspended"),
        pytest.param(_serving(4), _serving(5), False, id="scaled up"),
        pytest.param(_serving(0), _serving(1), False, id="scaled up from 0"),
        pytest.param(_serving(4, gpus=7), _serving(4), False, id="more GPUs"),
        pytest.param(_training(suspend=True), _training(suspend=False), False, id="resumed"),
        pytest.param(None, _serving(4), False, id="created"),
    ],
)
@pytest.mark.parametrize(("rule", "fact"), [("OverBudget", SPENT), ("OverQuota", QUOTA)])
def test_a_change_that_asks_for_nothing_more_is_within_every_budget_and_quota(
    before: Obj | None, obj: Obj, is_allowed: bool, rule: str, fact: Obj
) -> None:
    modes = RuleModes(default="off", rules={rule: "enforce"})
    assert _answer(obj, None, modes, fact, before=before)["allowed"] is is_allowed
