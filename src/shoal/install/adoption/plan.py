"""The plan of an adoption: what is taken over, stopped and set aside, what stays, and what has no effect.

Guarantees: the plan names each object that the adoption changes, and nothing else is changed. Pods and admissions are
not among them.

Rejected: copies of queues in kinds of Shoal. Shoal serves the kinds of the other project, so that the objects stay
valid for it, and a revert needs no translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.install.adoption.controllers import controllers_of, converting_services, is_ours
from shoal.install.adoption.facts import AdoptionFacts, live_holder
from shoal.install.adoption.ignored_fields import IgnoredField, ignored_fields
from shoal.install.adoption.projects import KAI, KUEUE, AdoptedProject
from shoal.install.adoption.record import (
    AdoptionRecord,
    SavedDefinition,
    SavedDeployment,
    SavedHook,
)
from shoal.install.objects.certificates import WEBHOOK_SERVICE
from shoal.install.objects.configuration import scheduling_parts
from shoal.install.preflight.facts import Finding
from shoal.install.preflight.rights import right_findings
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues
from shoal.units.errors import UserError

Obj = dict[str, Any]
PROVIDED = "shoal.dev/provided"
"""The label of a definition whose conversion Shoal's webhook serves, with the name of the project."""
_RETURNING = {
    "argocd.argoproj.io/instance": "Argo CD",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "kustomize.toolkit.fluxcd.io/name": "Flux",
    "helm.toolkit.fluxcd.io/name": "Flux",
    "olm.owner": "the Operator Lifecycle Manager",
}
"""Labels and annotations of programs that restore an object that was changed."""
_SETTINGS = (
    *("manageJobsWithoutQueueName", "managedJobsNamespaceSelector", "integrations.frameworks", "waitForPodsReady"),
    *("fairSharing", "admissionFairSharing", "resources"),
)


class TakenKind(msgspec.Struct, frozen=True, rename="camel"):
    kind: str
    objects: int
    use: str


class AdoptionPlan(msgspec.Struct, frozen=True, rename="camel"):
    project: str
    title: str
    namespace: str
    """Of the project."""
    release: str
    release_namespace: str
    taken_over: tuple[TakenKind, ...] = ()
    settings: tuple[str, ...] = ()
    """Of its configuration, which is followed."""
    stopped: tuple[SavedDeployment, ...] = ()
    set_aside: tuple[SavedHook, ...] = ()
    conversions: tuple[str, ...] = ()
    """Definitions whose objects Shoal's webhook converts."""
    removed_api_services: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    without_effect: tuple[IgnoredField, ...] = ()
    next_steps: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.level == "error"]


def adoption_plan(
    project: AdoptedProject,
    namespace: str,
    release: Release,
    facts: AdoptionFacts,
    values: ChartValues,
    warnings: Iterable[IgnoredField] = (),
) -> AdoptionPlan:
    """`values`: of the release. `namespace`: where the configuration of the release expects the project. `warnings`:
    what the reader of the project's discipline says about its configuration."""
    record = record_of(project, namespace, facts)
    taken = tuple(
        TakenKind(f"{kind.name}.{kind.group}", len(listed), kind.use)
        for kind, listed in facts.objects.items()
        if listed and kind.use
    )
    return AdoptionPlan(
        project.name,
        project.title,
        namespace,
        release.name,
        release.namespace,
        taken,
        tuple(_followed(project, facts.settings)),
        record.deployments,
        record.hooks,
        tuple(one.name for one in record.definitions),
        tuple(one["metadata"]["name"] for one in record.api_services),
        tuple(_unchanged(project, facts)),
        (*ignored_fields(project, facts.objects, facts.settings), *warnings),
        tuple(_next_steps(project, release)),
        tuple(_findings(project, namespace, facts, values)),
    )


def record_of(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> AdoptionRecord:
    """The present state of all that the adoption changes."""
    return AdoptionRecord(
        project.name,
        namespace,
        deployments=tuple(
            SavedDeployment(namespace, one["metadata"]["name"], one["spec"].get("replicas", 1))
            for one in controllers_of(project, namespace, facts)
        ),
        hooks=tuple(_hooks(namespace, facts)),
        definitions=tuple(_definitions(project, namespace, facts)),
        api_services=tuple(
            _bare(one)
            for one in facts.api_services
            if not is_ours(one) and _leads_to(namespace, one["spec"].get("service"))
        ),
    )


def _hooks(namespace: str, facts: AdoptionFacts) -> Iterator[SavedHook]:
    for obj in facts.hooks:
        names = [
            one["name"]
            for one in obj.get("webhooks") or ()
            if _leads_to(namespace, (one.get("clientConfig") or {}).get("service"))
        ]
        if names:
            yield SavedHook(obj["kind"], obj["metadata"]["name"], tuple(names))


def _definitions(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> Iterator[SavedDefinition]:
    """Whose objects are converted by the webhook of the project, which does not answer any more."""
    if project.name != KUEUE.name:
        return
    for obj in facts.definitions:
        conversion = obj["spec"].get("conversion") or {}
        client = (conversion.get("webhook") or {}).get("clientConfig") or {}
        if len(obj["spec"]["versions"]) > 1 and _leads_to(namespace, client.get("service")):
            label = (obj["metadata"].get("labels") or {}).get(PROVIDED)
            yield SavedDefinition(obj["metadata"]["name"], conversion, label)


def _leads_to(namespace: str, service: Obj | None) -> bool:
    """To the project. The release may be in the same namespace."""
    found = service or {}
    return found.get("namespace") == namespace and found.get("name") != WEBHOOK_SERVICE


def _bare(obj: Obj) -> Obj:
    """As it can be created again."""
    meta = obj["metadata"]
    kept = {name: meta[name] for name in ("name", "labels", "annotations") if meta.get(name)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept, "spec": obj["spec"]}


def _followed(project: AdoptedProject, settings: Mapping[str, str]) -> Iterator[str]:
    """The settings of Kueue that decide, where its configuration names them."""
    if project.name != KUEUE.name:
        return
    for text in settings.values():
        try:
            documents = [value for _, value in read_yaml(text) if isinstance(value, dict)]
        except UserError:
            continue
        for value in documents:
            for path in _SETTINGS:
                found: Any = value
                for name in path.split("."):
                    found = found.get(name) if isinstance(found, dict) else None
                if found is not None:
                    yield f"{path}: {msgspec.json.encode(found).decode()}"


def _unchanged(project: AdoptedProject, facts: AdoptionFacts) -> Iterator[str]:
    for kind, listed in facts.objects.items():
        if kind.name == "Workload":
            admitted = sum(_has_condition(one, "Admitted") and not _has_condition(one, "Finished") for one in listed)
            yield f"{admitted} admitted Workloads keep their admissions and quota"
    if project.schedulers:
        yield f"{facts.pods} pods that {project.title} placed keep running"
    else:
        yield "running pods keep running"
    if facts.reservation_pods:
        yield f"{facts.reservation_pods} reservation pods of {project.title} keep their GPUs"
    yield "no object of a user is changed by the adoption itself"


def _has_condition(obj: Obj, name: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == name and one.get("status") == "True" for one in conditions)


def _next_steps(project: AdoptedProject, release: Release) -> Iterator[str]:
    listed = "workloads" if project.name == KUEUE.name else "pods -A"
    yield f"check what waits: shoal get {listed}; shoal status {release.name}"
    yield f"pause what installs {project.title} again (Helm, Argo CD, Flux), or its replicas return"
    if project.name == KAI.name:
        yield "when all pods that share GPUs have ended, remove the reservation pods of KAI"
    named = f"{release.name} -n {release.namespace}"
    yield f"to return to {project.title}: shoal install {named} --adopt {project.name} --revert"
    yield f"keep the definitions and the namespace of {project.title} as long as its objects are used"


def _findings(project: AdoptedProject, namespace: str, facts: AdoptionFacts, values: ChartValues) -> Iterator[Finding]:
    check = "adoption"
    yield from right_findings(facts.denied, "")
    if values.get("observe.enabled"):
        what = "the release only observes"
        yield Finding("error", check, what, "install the other parts with: shoal upgrade --set observe.enabled=false")
    missing = [one for one in project.parts if one not in scheduling_parts(values)]
    if missing:
        what = f"the release does not run {', '.join(missing)}, which replace {project.title}"
        yield Finding("error", check, what, "add them to the value controllers")
    stopped = controllers_of(project, namespace, facts)
    if not any(facts.objects.values()) and not stopped:
        what = f"{project.title} was not found in the namespace {namespace}, and there is no object of its kinds"
        yield Finding("error", check, what, "nothing is to be adopted")
    yield from _elsewhere(project, namespace, facts)
    if not stopped:
        yield from _unknown_controllers(project, namespace, facts)
    yield from _other_configuration(project, namespace, facts)
    for one in stopped:
        yield from _restored_by(one)
    if any(True for _ in _definitions(project, namespace, facts)) and not values.get("webhook.enabled"):
        what = "definitions have several versions, and the webhook that converts their objects is not enabled"
        yield Finding("error", check, what, "set webhook.enabled=true")


def _elsewhere(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> Iterator[Finding]:
    """By the usual name of a controller, or by the Service that converts the objects of the project. Webhooks for its
    kinds do not show it: other programs have such webhooks too."""
    named = {space for space, _ in converting_services(project, facts) if space != namespace}
    for one in facts.deployments:
        meta = one["metadata"]
        if meta["name"] == project.deployments[0] and meta["namespace"] != namespace:
            named.add(meta["namespace"])
    for space in sorted(named):
        what = f"{project.title} is in the namespace {space}, and Shoal looks for it in {namespace}"
        yield Finding("error", "adoption", what, f"set config.namespaces.{project.name}={space}")


def _unknown_controllers(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> Iterator[Finding]:
    """Which the adoption would not stop: their Deployment may have another name."""
    for lease in facts.leases:
        holder = live_holder(lease, facts.now)
        if holder:
            name = lease["metadata"]["name"]
            what = (
                f"{project.title} runs: {holder} holds the Lease {namespace}/{name}, and its Deployment was not found"
            )
            fix = f"stop it first: find it by kubectl get deployments -n {namespace}, and scale it to 0 replicas"
            yield Finding("error", "adoption", what, fix)


def _other_configuration(project: AdoptedProject, namespace: str, facts: AdoptionFacts) -> Iterator[Finding]:
    """Shoal follows the configuration of Kueue by the usual name of its ConfigMap, and of no other project."""
    if project.name != KUEUE.name or facts.config_map in ("", project.config_map):
        return
    key = next(iter(facts.settings), "")
    escaped = key.replace(".", "\\.")
    read = f"kubectl get configmap -n {namespace} {facts.config_map} -o jsonpath='{{.data.{escaped}}}'"
    what = f"the settings of {project.title} are in the ConfigMap {namespace}/{facts.config_map}"
    fix = f'kubectl create configmap -n {namespace} {project.config_map} --from-literal={key}="$({read})"'
    yield Finding("error", "adoption", f"{what}, and Shoal reads {project.config_map}", f"copy them: {fix}")


def _restored_by(deployment: Obj) -> Iterator[Finding]:
    meta = deployment["metadata"]
    words = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    owners = [one.get("kind", "") for one in meta.get("ownerReferences") or () if one.get("controller")]
    programs = [f"its owner, a {kind}" for kind in owners] + [who for key, who in _RETURNING.items() if key in words]
    for who in dict.fromkeys(programs):
        yield Finding(
            "warning",
            "adoption",
            f"the Deployment {meta['namespace']}/{meta['name']} is maintained by {who}, which may start it again",
            "pause it first; while the controller runs, Shoal leaves the decisions to it",
        )
