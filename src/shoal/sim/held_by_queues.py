"""Finds the pods of a set of manifests that queues hold back before any node is considered, each with the reason.

The queues of Volcano and KAI are not part of the facts: on a cluster, controllers apply them. Without this module, a
snapshot of a cluster would be decided as if these queues did not exist.

Guarantees: the help text never asks a user to remove a scheduling gate that a queue removes; other pods are unchanged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from shoal.api.decode import Document, Unknown, meta_of
from shoal.api.groups.volcano import VolcanoPodGroup
from shoal.api.pod import Pod
from shoal.engine.events import Event, PodArrived
from shoal.engine.from_api.membership import KUEUE_GROUP_LABEL, KUEUE_TOTAL_ANNOTATION
from shoal.engine.reasons import Code
from shoal.sim import kai_queues, volcano_queues, volcano_settings
from shoal.sim.held_by_budgets import held_by_budgets
from shoal.sim.queued_pods import GATES
from shoal.store.held_pods import HeldPod
from shoal.store.manifest_cluster import ManifestCluster
from shoal.units.numbers import whole_of

_QUEUE_LABEL = "kueue.x-k8s.io/queue-name"


def without_queue_objects(documents: Sequence[Document]) -> list[Document]:
    """The documents that readers of queues do not read. Jobs of Volcano with a pod group are read by that group."""
    grouped_jobs = {
        (group.metadata.namespace, owner.name)
        for each in documents
        if isinstance(group := each.value, VolcanoPodGroup)
        for owner in group.metadata.owner_references
        if owner.kind == "Job"
    }
    return [
        each
        for each in documents
        if not (
            volcano_queues.is_queue(each)
            or kai_queues.is_queue(each)
            or kai_queues.is_shard(each)
            or kai_queues.is_config(each)
            or volcano_settings.is_settings(each)
            or _is_volcano_job(each, grouped_jobs)
        )
    ]


def _is_volcano_job(document: Document, grouped_jobs: set[tuple[str, str]]) -> bool:
    value = document.value
    is_job = isinstance(value, Unknown) and value.kind == "Job" and value.api_version.startswith("batch.volcano.sh/")
    return is_job and (meta_of(value).namespace, meta_of(value).name) in grouped_jobs


def held_under(documents: Sequence[Document], world: ManifestCluster, events: Sequence[Event]) -> dict[str, HeldPod]:
    """The reasons by held pod and group under the queues of these documents."""
    over_budget = held_by_budgets(documents, events, world)
    if over_budget:
        # No queue sees them.
        events = [event for event in events if not (isinstance(event, PodArrived) and event.key in over_budget)]
    waiting = [placed.value for placed in world.waiting if placed.value.metadata.key not in over_budget]
    kept = over_budget | volcano_queues.held_by_volcano(documents, waiting, events)
    return kept | kai_queues.held_by_kai(documents, events, world.now_s)


def hold_queued_pods(documents: Sequence[Document], world: ManifestCluster) -> None:
    """Removes held pods from the events of `world`, and adds the reasons for them and for gated pods of Kueue."""
    kept = held_under(documents, world, world.events)
    if kept:
        world.before_queues = world.events
        world.held_asks |= {
            event.key: event.ask for event in world.events if isinstance(event, PodArrived) and event.key in kept
        }
        world.events = [event for event in world.events if not (isinstance(event, PodArrived) and event.key in kept)]
        world.gated |= kept
    gated = {key for key, hold in world.gated.items() if not isinstance(hold, HeldPod) and GATES.intersection(hold)}
    if gated:
        pods = [each.value for each in documents if isinstance(each.value, Pod)]
        sizes = group_sizes(pods)
        world.gated |= {pod.metadata.key: _held_by_kueue(pod, sizes) for pod in pods if pod.metadata.key in gated}


def _held_by_kueue(pod: Pod, sizes: Mapping[tuple[str, str], int]) -> HeldPod:
    names = [gate.name for gate in pod.spec.scheduling_gates]
    others = [name for name in names if name not in GATES]
    opened = ", ".join(name for name in names if name in GATES)
    words = f"Scheduling is blocked due to non-empty scheduling gates: {', '.join(names)}."
    queue, group = pod.metadata.labels.get(_QUEUE_LABEL, ""), pod.metadata.labels.get(KUEUE_GROUP_LABEL, "")
    cause, remedy = _group_message(pod, group, sizes) if group else ("", "")
    if not cause and not queue:
        cause, remedy = f"It names no queue by the label {_QUEUE_LABEL}.", "Set it on the pod's owner."
    help_ = [remedy, f"Its queue opens {opened} when it is admitted.", f"Remove {', '.join(others)}." if others else ""]
    return HeldPod(
        Code.GATED,
        " ".join(part for part in (words, cause) if part),
        " ".join(part for part in help_ if part),
        f"LocalQueue {pod.metadata.namespace}/{queue}" if queue else "",
    )


def _group_message(pod: Pod, group: str, sizes: Mapping[tuple[str, str], int]) -> tuple[str, str]:
    """Why a pod group of Kueue is not a workload yet, with the message of its Event, and the remedy."""
    total = pod.metadata.annotations.get(KUEUE_TOTAL_ANNOTATION)
    if total is None:
        words = f"The pods of group '{group}' do not say how many they are: {KUEUE_TOTAL_ANNOTATION} is missing."
        return words, f"Make them anew with the annotation {KUEUE_TOTAL_ANNOTATION}."
    existing = sizes.get((pod.metadata.namespace, group), 0)
    lacking = (whole_of(total) or 0) - existing
    if lacking <= 0:
        return "", ""
    words = f"'{group}' group has fewer runnable pods than expected: {existing} of {total}."
    return words, f"Create {lacking:,} pod{'' if lacking == 1 else 's'} more."


def group_sizes(pods: Sequence[Pod]) -> Mapping[tuple[str, str], int]:
    """How many pods that have not failed each pod group of Kueue has, by namespace and name."""
    return Counter(
        (pod.metadata.namespace, group)
        for pod in pods
        if pod.status.phase != "Failed" and (group := pod.metadata.labels.get(KUEUE_GROUP_LABEL))
    )
