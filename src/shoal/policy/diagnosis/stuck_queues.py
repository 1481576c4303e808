"""Why a workload of Kueue is not admitted: its LocalQueue, the ClusterQueue, flavors or quota."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from shoal.api.selectors import selector_of
from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import (
    DiagnosedCluster,
    condition,
    few,
    labels_of,
    name_of,
    named,
    quantity_of,
    text_of,
)
from shoal.policy.diagnosis.verdicts import FoundCause, NotRun, RuledOut, Verdict, shell_command
from shoal.policy.fields import dig, label_selector, maps, string_keys, strings
from shoal.policy.kinds import CLUSTER_QUEUE, LOCAL_QUEUE, NAMESPACE, RESOURCE_FLAVOR, WORKLOAD
from shoal.policy.object_set import key_of
from shoal.units.near_texts import meant_words
from shoal.units.quantity import ZERO, Quantity

QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
Sums = dict[str, Quantity]


def is_unadmitted(workload: Obj) -> bool:
    return (
        condition(workload, "Admitted").get("status") != "True"
        and condition(workload, "Finished").get("status") != "True"
    )


def queued_job(facts: DiagnosedCluster, job: Obj) -> Iterator[Verdict]:
    """The queue of a job, by its label and its Workloads."""
    namespace, _ = key_of(job)
    queue = labels_of(job).get(QUEUE_LABEL)
    owned = facts.owned_by(WORKLOAD, job)
    for workload in owned:
        yield from stuck_workload(facts, workload)
    if queue and not owned:
        if facts.find(LOCAL_QUEUE, namespace, queue) is None:
            yield _no_local_queue(facts, named(job), namespace, queue)
        elif not facts.is_known(WORKLOAD):
            yield NotRun(named(job), "its admission", facts.why_unknown(WORKLOAD))


def stuck_workload(facts: DiagnosedCluster, workload: Obj) -> Iterator[Verdict]:
    subject = named(workload)
    if not is_unadmitted(workload):
        yield RuledOut(subject, "the workload is admitted or has finished")
        return
    namespace, _ = key_of(workload)
    said = condition(workload, "QuotaReserved")
    evidence = (text_of(f"QuotaReserved: {said.get('reason') or ''}: {said.get('message') or ''}"),) if said else ()
    if dig(workload, "spec", "active") is False:
        patch = '{"spec":{"active":true}}'
        command = shell_command(
            "kubectl patch workload {} -n {} --type merge -p {}", name_of(workload), namespace, patch
        )
        what = "the workload is deactivated (spec.active is false)"
        yield FoundCause("WorkloadDeactivated", subject, what, "set it to true", evidence, (command,))
        return
    queue = str(dig(workload, "spec", "queueName") or "")
    missing = facts.not_run(subject, "the queue of the workload", LOCAL_QUEUE, CLUSTER_QUEUE)
    local = facts.find(LOCAL_QUEUE, namespace, queue)
    if local is None:
        yield (
            missing
            if missing is not None and not facts.is_known(LOCAL_QUEUE)
            else _no_local_queue(facts, subject, namespace, queue, evidence)
        )
        return
    yield RuledOut(subject, f"the LocalQueue {namespace}/{queue} exists")
    if missing is not None:
        yield missing
        return
    name = str(dig(local, "spec", "clusterQueue") or "")
    cluster_queue = facts.find(CLUSTER_QUEUE, "", name)
    if cluster_queue is None:
        near = meant_words(name, [name_of(one) for one in facts.all(CLUSTER_QUEUE)])
        what = f"the LocalQueue {queue} names the ClusterQueue {name}, which does not exist{near}"
        yield FoundCause(
            "ClusterQueueMissing",
            subject,
            what,
            "create it, or name another one",
            evidence,
            ("kubectl get clusterqueues",),
        )
        return
    checks = list(_stopped(local, cluster_queue, subject)) + list(_namespaces(facts, cluster_queue, subject, namespace))
    yield from checks
    yield from _flavors(facts, cluster_queue, workload, evidence)
    yield from _checks(workload)


def _no_local_queue(
    facts: DiagnosedCluster, subject: str, namespace: str, queue: str, evidence: tuple[str, ...] = ()
) -> FoundCause:
    there = [name_of(one) for one in facts.all(LOCAL_QUEUE, namespace)]
    elsewhere = [key_of(one)[0] for one in facts.all(LOCAL_QUEUE) if name_of(one) == queue]
    more = [f"the namespace {namespace} has {few(sorted(there)) or 'no LocalQueue'}"]
    if elsewhere:
        more.append(f"a LocalQueue of this name is in {few(sorted(elsewhere))}; a job uses those of its own namespace")
    if facts.find(CLUSTER_QUEUE, "", queue) is not None:
        more.append(f"{queue} is a ClusterQueue; jobs name a LocalQueue")
    what = f"the namespace {namespace} has no LocalQueue {queue or '(no queue is named)'}{meant_words(queue, there)}"
    fix = f"correct the label {QUEUE_LABEL}, or create the LocalQueue"
    return FoundCause(
        "LocalQueueMissing",
        subject,
        what,
        fix,
        (*evidence, *more),
        (shell_command("kubectl get localqueues -n {}", namespace),),
    )


def _stopped(local: Obj, queue: Obj, subject: str) -> Iterator[Verdict]:
    for one in (local, queue):
        policy = dig(one, "spec", "stopPolicy")
        if policy in ("Hold", "HoldAndDrain"):
            what = f"{named(one)} is stopped (stopPolicy {policy})"
            kind, namespace = str(one.get("kind")).lower(), key_of(one)[0]
            form = " ".join(("kubectl patch {} {}", *(("-n {}",) if namespace else ()), "--type merge -p {}"))
            patch = '{"spec":{"stopPolicy":"None"}}'
            command = shell_command(form, kind, name_of(one), *((namespace,) if namespace else ()), patch)
            yield FoundCause("QueueStopped", subject, what, "set stopPolicy to None", (), (command,))
    active = condition(queue, "Active")
    if active.get("status") == "False" and dig(queue, "spec", "stopPolicy") in (None, "None"):
        evidence = (text_of(f"Active is False: {active.get('reason') or ''}: {active.get('message') or ''}"),)
        what = f"the ClusterQueue {name_of(queue)} is not active"
        yield FoundCause(
            "ClusterQueueInactive",
            subject,
            what,
            "correct what the message names",
            evidence,
            (shell_command("kubectl describe clusterqueue {}", name_of(queue)),),
        )


def _namespaces(facts: DiagnosedCluster, queue: Obj, subject: str, namespace: str) -> Iterator[Verdict]:
    written = dig(queue, "spec", "namespaceSelector")
    if written is None:
        what = f"the ClusterQueue {name_of(queue)} has no namespaceSelector, so no namespace may use it"
        patch = '{"spec":{"namespaceSelector":{}}}'
        command = shell_command("kubectl patch clusterqueue {} --type merge -p {}", name_of(queue), patch)
        yield FoundCause(
            "NamespaceNotSelected", subject, what, "set namespaceSelector; {} selects all namespaces", (), (command,)
        )
        return
    selector = label_selector(written)
    if selector is None or written == {}:
        yield RuledOut(subject, f"the ClusterQueue {name_of(queue)} selects all namespaces")
        return
    found = facts.find(NAMESPACE, "", namespace)
    if found is None:
        yield NotRun(subject, "the namespaceSelector", f"the namespace {namespace} is not given")
        return
    labels = {"kubernetes.io/metadata.name": namespace, **labels_of(found)}
    if selector_of(selector).matches(labels):
        yield RuledOut(subject, f"the ClusterQueue {name_of(queue)} selects the namespace {namespace}")
        return
    what = f"the ClusterQueue {name_of(queue)} does not select the namespace {namespace}"
    fix = "label the namespace, or change the namespaceSelector"
    pairs = [f"{key}={value}" for key, value in string_keys(dig(written, "matchLabels")).items()]
    commands = (
        (shell_command(" ".join(("kubectl label namespace {}", *("{}" for _ in pairs))), namespace, *pairs),)
        if pairs
        else ()
    )
    yield FoundCause(
        "NamespaceNotSelected", subject, what, fix, (f"the selector asks for {few(pairs) or 'expressions'}",), commands
    )


def _flavors(facts: DiagnosedCluster, queue: Obj, workload: Obj, evidence: tuple[str, ...]) -> Iterator[Verdict]:
    subject, name = named(workload), name_of(queue)
    groups = maps(dig(queue, "spec", "resourceGroups"))
    parts = [_of_pods(pods) for pods in maps(dig(workload, "spec", "podSets"))]
    requests = {name: sum((part.get(name, ZERO) for part in parts), ZERO) for part in parts for name in part}
    largest = {name: max(part.get(name, ZERO) for part in parts) for name in requests}
    covered = {resource for group in groups for resource in strings(group.get("coveredResources"))}
    used = facts.quota_used.get(name, {})
    for resource, amount in requests.items():
        if resource == "pods" and resource not in covered:
            continue
        if resource not in covered:
            what = f"the ClusterQueue {name} does not cover {resource}, which the workload asks for"
            fix = f"add {resource} to coveredResources with a quota; it covers {few(sorted(covered)) or 'nothing'}"
            yield FoundCause(
                "ResourceNotCovered",
                subject,
                what,
                fix,
                evidence,
                (shell_command("kubectl edit clusterqueue {}", name),),
            )
            continue
        quotas = _quotas(groups, resource)
        quota = sum(quotas, ZERO)
        # All pods of a pod set are in one flavor.
        is_too_large = amount > quota or largest.get(resource, ZERO) > max(quotas, default=ZERO)
        if is_too_large and not _may_borrow(queue):
            what = (
                f"the workload asks for {amount} {resource}, more than the quota of the ClusterQueue {name} ({quota})"
            )
            fix = "ask for less, raise nominalQuota, or let the queue borrow in a cohort"
            yield FoundCause(
                "RequestExceedsQuota", subject, what, fix, evidence, (shell_command("shoal queue {}", name),)
            )
        elif amount + used.get(resource, ZERO) > quota:
            held = used.get(resource, ZERO)
            what = f"the quota of {resource} is in use: {held} of {quota}, and the workload asks for {amount}"
            fix = "wait, raise the quota, allow borrowing or preemption, or end another workload"
            yield FoundCause(
                "QuotaInUse",
                subject,
                what,
                fix,
                evidence,
                ("shoal queue", shell_command("shoal why workload/{} -n {}", name_of(workload), key_of(workload)[0])),
            )
        else:
            yield RuledOut(
                subject, f"the quota of {resource} suffices: {used.get(resource, ZERO)} of {quota} are in use"
            )
    yield from _flavor_objects(facts, groups, subject, name)


def _flavor_objects(facts: DiagnosedCluster, groups: list[Obj], subject: str, queue: str) -> Iterator[Verdict]:
    names = {str(flavor.get("name")) for group in groups for flavor in maps(group.get("flavors"))}
    missing = facts.not_run(subject, "the flavors of the queue", RESOURCE_FLAVOR)
    if missing is not None:
        yield missing
        return
    known = [name_of(one) for one in facts.all(RESOURCE_FLAVOR)]
    for name in sorted(names):
        flavor = facts.find(RESOURCE_FLAVOR, "", name)
        if flavor is None:
            near = meant_words(name, known)
            what = f"the ClusterQueue {queue} uses the ResourceFlavor {name}, which does not exist{near}"
            yield FoundCause(
                "FlavorMissing", subject, what, "create it, or name another one", (), ("kubectl get resourceflavors",)
            )
            continue
        wanted = {key: str(value) for key, value in string_keys(dig(flavor, "spec", "nodeLabels")).items()}
        if wanted and facts.nodes and not any(wanted.items() <= labels_of(node).items() for node in facts.nodes):
            what = f"no node has the labels of the ResourceFlavor {name}"
            words = few([f"{key}={value}" for key, value in wanted.items()])
            yield FoundCause(
                "FlavorWithoutNodes",
                subject,
                what,
                "correct its nodeLabels, or label nodes",
                (words,),
                ("kubectl get nodes --show-labels",),
            )


def _checks(workload: Obj) -> Iterator[Verdict]:
    for check in maps(dig(workload, "status", "admissionChecks")):
        if check.get("state") in ("Pending", "Retry", "Rejected"):
            what = f"the AdmissionCheck {check.get('name')} is {check['state']}"
            fix = "see the controller of the check; for provisioning see the ProvisioningRequest"
            yield FoundCause(
                "AdmissionCheckNotReady",
                named(workload),
                what,
                fix,
                (text_of(check.get("message")),),
                ("kubectl get admissionchecks",),
            )


def _of_pods(pods: Obj) -> Sums:
    """All that a pod set asks for."""
    found: Sums = defaultdict(lambda: ZERO)
    count = pods.get("count")
    for container in maps(dig(pods, "template", "spec", "containers")):
        limits, requests = (string_keys(dig(container, "resources", field)) for field in ("limits", "requests"))
        for name, amount in {**limits, **requests}.items():
            found[name] += Quantity(quantity_of(amount).nano * (count if isinstance(count, int) else 1))
    return dict(found)


def _quotas(groups: list[Obj], resource: str) -> list[Quantity]:
    """Of each flavor."""
    return [
        quantity_of(one.get("nominalQuota"))
        for group in groups
        for flavor in maps(group.get("flavors"))
        for one in maps(flavor.get("resources"))
        if one.get("name") == resource
    ]


def _may_borrow(queue: Obj) -> bool:
    return bool(dig(queue, "spec", "cohortName") or dig(queue, "spec", "cohort"))
