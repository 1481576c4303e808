"""The plan of an adoption: what it names for each project, field by field, and what stops it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from build.adopted_clusters import CONTROLLER, SPACE, deployment, service, webhook, webhook_service
from shoal.install.adoption.facts import AdoptionFacts
from shoal.install.adoption.plan import AdoptionPlan, adoption_plan
from shoal.install.adoption.plan_text import plan_lines
from shoal.install.adoption.projects import KAI, KUEUE, PROJECTS, VOLCANO, AdoptedProject, adopted_project
from shoal.install.adoption.record import AdoptionRecord, SavedDeployment
from shoal.install.preflight.facts import Right
from shoal.install.release import Release
from shoal.install.values.reading import ValuesText, read_values
from shoal.units.errors import UserError
from shoal.wiring.installation.discipline_warnings import discipline_warnings

Obj = dict[str, Any]
RELEASE = Release("shoal", "shoal-system", "0.2.0")


def _obj(name: str, spec: Obj | None = None, status: Obj | None = None, namespace: str = "") -> Obj:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"metadata": meta, "spec": spec or {}, "status": status or {}}


def _stopped(project: AdoptedProject, name: str, replicas: int = 1, **meta: Any) -> Obj:
    return deployment(name, replicas, namespace=project.namespace, **meta)


def _facts(project: AdoptedProject, settings: str = "", **objects: list[Obj]) -> AdoptionFacts:
    """`objects`: by plural."""
    kinds = {kind.plural: kind for kind in project.kinds}
    return AdoptionFacts(
        deployments=tuple(_stopped(project, name) for name in project.deployments),
        objects={kinds[plural]: tuple(listed) for plural, listed in objects.items()},
        settings={"file": settings} if settings else {},
    )


def _plan(project: AdoptedProject, facts: AdoptionFacts, values: str = "", namespace: str = "") -> AdoptionPlan:
    found = read_values([ValuesText("--values", values, "values.yaml")])
    warnings = discipline_warnings(project, facts)
    return adoption_plan(project, namespace or project.namespace, RELEASE, facts, found, warnings)


def _ignored(plan: AdoptionPlan) -> set[tuple[str, str]]:
    return {(one.obj, one.path) for one in plan.without_effect}


def test_kueues_objects_are_taken_over_and_its_admissions_kept() -> None:
    admitted = {"conditions": [{"type": "Admitted", "status": "True"}]}
    workloads = [_obj("a", status=admitted, namespace="t"), _obj("b", namespace="t")]
    plan = _plan(KUEUE, _facts(KUEUE, clusterqueues=[_obj("cq")], workloads=workloads))
    counts = {one.kind: one.objects for one in plan.taken_over}
    assert counts == {"ClusterQueue.kueue.x-k8s.io": 1, "Workload.kueue.x-k8s.io": 2}
    assert plan.stopped == (SavedDeployment(SPACE, CONTROLLER, 1),)
    assert "1 admitted Workloads keep their admissions and quota" in plan.unchanged
    assert plan.errors == []


def test_settings_of_kueue_are_followed_or_named_as_without_effect() -> None:
    text = (
        "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nmanageJobsWithoutQueueName: true\n"
        "integrations: {frameworks: [batch/job], externalFrameworks: [Foo.v1.x]}\nfairSharing: {enable: true}\n"
        "objectRetentionPolicies: {workloads: {afterFinished: 1h}}\nfeatureGates: {MultiKueue: true}\nqueus: 1\n"
    )
    plan = _plan(KUEUE, _facts(KUEUE, text, clusterqueues=[_obj("cq")]))
    assert plan.settings == (
        "manageJobsWithoutQueueName: true",
        'integrations.frameworks: ["batch/job"]',
        'fairSharing: {"enable":true}',
    )
    name = "ConfigMap kueue-manager-config"
    assert _ignored(plan) == {
        (name, "objectRetentionPolicies"),
        (name, "integrations.externalFrameworks"),
        (name, "featureGates.MultiKueue"),
        (name, "queus"),
    }


def test_checks_of_kueue_that_shoal_does_not_perform_are_named() -> None:
    multi = _obj("multi", {"controllerName": "kueue.x-k8s.io/multikueue"})
    own = _obj("own", {"controllerName": "example.com/budget"})
    facts = _facts(KUEUE, admissionchecks=[multi, own], multikueueconfigs=[_obj("clusters")])
    expected = {("AdmissionCheck multi", "spec.controllerName"), ("MultiKueueConfig clusters", "")}
    assert _ignored(_plan(KUEUE, facts)) == expected


def test_fields_of_volcano_are_named_one_by_one() -> None:
    queue = _obj("q", {"priority": 5, "weight": 2, "extendClusters": []})
    job = _obj(
        "j", {"plugins": {"ray": [], "svc": []}, "tasks": [{"name": "a"}, {"partitionPolicy": {"n": 1}}]}, None, "t"
    )
    text = (
        "actions: enqueue, allocate, shuffle, gangpreempt, alocate\n"
        "tiers:\n- plugins: [{name: gang, enablePreemptable: false}, {name: drf}, {name: numaaware}]\n"
        "- plugins: [{name: binpack}, {name: conformence}]\n"
    )
    facts = _facts(VOLCANO, text, queues=[queue], jobs=[job], cronjobs=[_obj("nightly", namespace="t")])
    plan = _plan(VOLCANO, facts)
    name = "ConfigMap volcano-scheduler-configmap"
    assert _ignored(plan) == {
        ("Job t/j", "spec.plugins.ray"),
        ("Job t/j", "spec.tasks[1].partitionPolicy"),
        ("CronJob t/nightly", ""),
        (name, "actions"),
        (name, "tiers[0].plugins[2]"),
        (name, "tiers[1].plugins[1]"),
    }
    assert [one.name for one in plan.stopped] == ["volcano-scheduler", "volcano-controllers", "volcano-admission"]


def test_what_has_no_effect_in_kais_shards_is_named_and_its_operator_is_stopped_first() -> None:
    shard = _obj("default", {"kValue": 1.0, "actions": {"reclame": {}}, "plugins": {"minruntime": {}}})
    share = {"gpu": {"overQuotaWeight": 2}, "cpu": {"overQuotaWeight": 1}, "memory": {"overQuotaWeight": 2}}
    queue = _obj("q", {"resources": share})
    facts = _facts(KAI, schedulingshards=[shard], queues=[queue])
    more = (
        *facts.deployments,
        _stopped(KAI, "binder"),
        _stopped(KAI, "shoal", labels={"app.kubernetes.io/name": "shoal"}),
    )
    plan = _plan(KAI, msgspec.structs.replace(facts, deployments=more, pods=3, reservation_pods=1))
    assert _ignored(plan) == {
        ("SchedulingShard default", "spec.actions.reclame"),
    }
    names = [one.name for one in plan.stopped]
    assert (names[0], names[-1], "shoal" in names) == ("kai-operator", "binder", False)
    assert "3 pods that KAI placed keep running" in plan.unchanged
    assert "1 reservation pods of KAI keep their GPUs" in plan.unchanged


def test_only_webhooks_and_apis_that_lead_to_the_project_are_set_aside() -> None:
    hooks: Obj = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "both"}}
    hooks["webhooks"] = [webhook("a.kueue"), webhook("b.other", "other")]
    other = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "x"}, "webhooks": [webhook("c", "other")]}
    apis = tuple(
        {
            "apiVersion": "v1",
            "kind": "APIService",
            "metadata": {"name": name},
            "spec": {"service": {"namespace": space}},
        }
        for name, space in (("visibility", SPACE), ("metrics", "kube-system"))
    )
    facts = msgspec.structs.replace(_facts(KUEUE), hooks=(hooks, other), api_services=apis)
    plan = _plan(KUEUE, facts)
    assert [(one.name, one.hooks) for one in plan.set_aside] == [("both", ("a.kueue",))]
    assert plan.removed_api_services == ("visibility",)


def test_webhooks_and_conversions_of_shoal_in_the_namespace_of_the_project_stay() -> None:
    own: Obj = {"namespace": SPACE, "name": "shoal-webhook", "path": "/x"}
    hook = {**webhook("a.shoal"), "clientConfig": {"service": own}}
    hooks = {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "shoal"}, "webhooks": [hook]}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": {"service": own}}}
    definition = _obj("workloads.kueue.x-k8s.io", {"versions": [{}, {}], "conversion": conversion})
    api = _obj("v1beta1.metrics.shoal.dev", {"service": {"namespace": SPACE, "name": "shoal"}})
    api["metadata"]["labels"] = {"app.kubernetes.io/name": "shoal"}
    facts = msgspec.structs.replace(_facts(KUEUE), hooks=(hooks,), definitions=(definition,), api_services=(api,))
    plan = _plan(KUEUE, facts)
    assert (plan.set_aside, plan.conversions, plan.removed_api_services) == ((), (), ())


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("holder", "renewed", "has_deployment", "is_refused"),
    [
        ("batch-kueue-controller-manager-1_a", "2025-12-31T23:59:55.000000Z", False, True),
        ("batch-kueue-controller-manager-1_a", "2025-12-31T23:59:55.000000Z", True, False),
        ("batch-kueue-controller-manager-1_a", "2025-12-31T23:59:40.000000Z", False, False),
        ("batch-kueue-controller-manager-1_a", None, False, False),
        ("", "2025-12-31T23:59:55.000000Z", False, False),
        ("shoal-install", "2025-12-31T23:59:55.000000Z", False, False),
    ],
)
def test_a_leader_whose_deployment_was_not_found_stops_the_adoption(
    holder: str, renewed: str | None, has_deployment: bool, is_refused: bool
) -> None:
    spec = {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}
    lease = {"metadata": {"name": "c1f6bfd2.kueue.x-k8s.io", "namespace": SPACE}, "spec": spec}
    facts = _facts(KUEUE, clusterqueues=[_obj("cq")])
    facts = msgspec.structs.replace(facts, leases=(lease,), now=NOW)
    if not has_deployment:
        facts = msgspec.structs.replace(facts, deployments=())
    words = [one.what for one in _plan(KUEUE, facts).errors]
    assert [f"Kueue runs: {holder} holds the Lease" in one for one in words] == [True] * is_refused


@pytest.mark.parametrize(
    ("values", "namespace", "facts", "words"),
    [
        ("observe: {enabled: true}", "", {}, "the release only observes"),
        ("controllers: [scheduler]", "", {}, "does not run queues, jobs, pods, gatekeeper, which replace Kueue"),
        ("", "kueue", {}, "Kueue is in the namespace kueue-system, and Shoal looks for it in kueue; set config."),
        ("", "", {"deployments": ()}, "Kueue was not found in the namespace kueue-system"),
        ("", "", {"denied": (Right("deployments", "apps", "patch", SPACE),)}, "may not patch deployments.apps in the"),
    ],
)
def test_an_error_stops_the_adoption(values: str, namespace: str, facts: Obj, words: str) -> None:
    found = msgspec.structs.replace(_facts(KUEUE), **facts)
    assert words in " | ".join(map(str, _plan(KUEUE, found, values, namespace).errors))


@pytest.mark.parametrize(
    ("meta", "who"),
    [
        ({"annotations": {"argocd.argoproj.io/tracking-id": "a"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "a"}}, "Flux"),
        ({"ownerReferences": [{"kind": "Kueue", "controller": True}]}, "its owner, a Kueue"),
    ],
)
def test_a_program_that_would_start_the_controller_again_is_named(meta: Obj, who: str) -> None:
    facts = msgspec.structs.replace(_facts(KUEUE), deployments=(_stopped(KUEUE, CONTROLLER, **meta),))
    (warning,) = _plan(KUEUE, facts).findings
    assert (warning.level, who in warning.what) == ("warning", True)


def _asked(project: AdoptedProject, facts: AdoptionFacts, pods: dict[str, str], hook: Obj) -> AdoptionFacts:
    """The API server asks a Service with this selector about kinds of the project."""
    service = webhook_service(pods, space=project.namespace)
    return msgspec.structs.replace(
        facts,
        services=(service,),
        hooks=({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"}, "webhooks": [hook]},),
    )


def test_the_controllers_of_a_helm_release_are_found_by_the_service_of_their_webhook() -> None:
    names = ("prod-controllers", "other-scheduler", "prod-scheduler", "prod-admission", "dashboard")
    facts = msgspec.structs.replace(
        _facts(VOLCANO, queues=[_obj("q")]), deployments=tuple(_stopped(VOLCANO, name) for name in names)
    )
    assert _plan(VOLCANO, facts).stopped == ()
    asked = webhook("vjob.volcano.sh", VOLCANO.namespace, "batch.volcano.sh")
    led = _asked(VOLCANO, facts, {"control-plane": "prod-admission"}, asked)
    assert [one.name for one in _plan(VOLCANO, led).stopped] == ["prod-scheduler", "prod-controllers", "prod-admission"]


def test_a_service_that_is_not_asked_about_the_kinds_of_the_project_names_no_controller() -> None:
    facts = msgspec.structs.replace(
        _facts(KUEUE, clusterqueues=[_obj("cq")]), deployments=(_stopped(KUEUE, "policies"),)
    )
    for pods, group in (({"control-plane": "policies"}, "apps"), ({}, "kueue.x-k8s.io")):
        asked = _asked(KUEUE, facts, pods, webhook("x", group=group))
        assert _plan(KUEUE, asked).stopped == ()


def test_a_project_in_another_namespace_is_found_by_the_conversion_of_its_objects() -> None:
    def converted(space: str) -> Obj:
        conversion = {"strategy": "Webhook", "webhook": {"clientConfig": service("/convert", space)}}
        spec = {"group": "kueue.x-k8s.io", "versions": [{}, {}], "conversion": conversion}
        return {"metadata": {"name": "workloads.kueue.x-k8s.io"}, "spec": spec}

    facts = msgspec.structs.replace(_facts(KUEUE, clusterqueues=[_obj("cq")]), deployments=())
    other = _asked(KUEUE, facts, {}, webhook("x", "policies"))
    assert _plan(KUEUE, other).errors == []
    (error,) = _plan(KUEUE, msgspec.structs.replace(facts, definitions=(converted("batch"),))).errors
    assert str(error) == (
        "Kueue is in the namespace batch, and Shoal looks for it in kueue-system; set config.namespaces.kueue=batch"
    )
    assert _plan(KUEUE, msgspec.structs.replace(facts, definitions=(converted(SPACE),))).errors == []


def test_the_plan_is_shown_in_chapters_and_as_a_document() -> None:
    plan = _plan(KUEUE, _facts(KUEUE, clusterqueues=[_obj("cq")]))
    lines = list(plan_lines(plan))
    assert lines[0] == "plan: release shoal in shoal-system takes over from Kueue in kueue-system"
    assert "  Deployment kueue-system/kueue-controller-manager: 1 -> 0 replicas" in lines
    assert "  to return to Kueue: shoal install shoal -n shoal-system --adopt kueue --revert" in lines
    document = msgspec.to_builtins(plan)
    assert document["takenOver"][0]["kind"] == "ClusterQueue.kueue.x-k8s.io"
    assert document["withoutEffect"] == ()


def test_a_repeated_adoption_keeps_what_was_saved_and_adds_what_is_new() -> None:
    former = AdoptionRecord("kueue", SPACE, deployments=(SavedDeployment(SPACE, "a", 3),))
    present = AdoptionRecord(
        "kueue", SPACE, deployments=(SavedDeployment(SPACE, "a", 0), SavedDeployment(SPACE, "b", 1))
    )
    assert [(one.name, one.replicas) for one in present.over(former).deployments] == [("a", 3), ("b", 1)]


def test_an_unknown_project_is_named_with_those_that_are_known() -> None:
    assert {one.name for one in PROJECTS} == {"kueue", "volcano", "kai"}
    with pytest.raises(UserError, match="did you mean kueue"):
        adopted_project("kueu")
