"""Reads manifests for the commands that decide: files become facts, a policy or a configuration becomes a placement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from shoal.api.decode import Document
from shoal.api.node_affinity import NodeAffinity
from shoal.cli.misspelled_names import misspelled_name_warnings
from shoal.cli.policy_names import parse_policies
from shoal.cli.unmatched_selectors import unmatched_selector_warnings
from shoal.engine.cluster import Cluster
from shoal.engine.cycle import STEPS
from shoal.engine.cycle_state import Step
from shoal.engine.events import PodArrived, PodBound
from shoal.engine.intake import Intake
from shoal.engine.kube_profile import KubeProfiles
from shoal.engine.placement import Placement
from shoal.engine.pod_mix import PodMix, class_of
from shoal.engine.profile import POLICIES, Builder
from shoal.engine.queues.disciplines.kai.sharded_fairshare import ShardedFairshare
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.proof import Proof
from shoal.engine.queues.settings import Settings
from shoal.sim import volcano_rounds
from shoal.sim.held_by_queues import hold_queued_pods, without_queue_objects
from shoal.sim.kai_queues import kai_queues, kai_shards
from shoal.sim.kai_rounds import discipline_of, grouped
from shoal.sim.queue_faults import queue_faults
from shoal.sim.queue_projects import queues_of_discipline
from shoal.sim.queue_rounds import QueueRounds
from shoal.sim.queued_pods import speaks_of_queues
from shoal.sim.queued_world import Queued, QueuedWorld
from shoal.sim.rounds import Rounds
from shoal.sim.volcano_queues import volcano_groups, volcano_pods, volcano_tree
from shoal.sim.volcano_settings import volcano_settings
from shoal.store.inventory import Inventory
from shoal.store.manifest_cluster import ManifestCluster, manifest_cluster_of
from shoal.store.queues import read_queue_manifests
from shoal.units.errors import UserError, Where, one_line

Limits = Callable[[Settings], Settings]
"""The queues' settings under the options of a command."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cluster as the manifests describe it, ready for its first round."""

    manifests: ManifestCluster
    intake: Intake
    placement: Placement
    now_s: float
    queued: Queued | None = None
    """None if no manifest mentions queues."""
    fairshare: ShardedFairshare | None = None
    """None if there are no queues of KAI."""
    volcano: Volcano | None = None
    """None if there are no queues of Volcano."""
    warnings: Sequence[str] = ()
    errors: Sequence[UserError] = ()
    """Errors of objects that are left out."""

    @property
    def cluster(self) -> Cluster:
        return self.intake.cluster


def rounds_of(
    loaded: Loaded,
    seed: int,
    *,
    steps: Sequence[Step] | None = None,
    keep_terminating: bool = False,
    recreate: bool = False,
) -> Rounds:
    """Its rounds, behind queues where there are any. `recreate`: evicted pods come back."""
    intake, placement = loaded.intake, loaded.placement
    disciplines = [each.steps() for each in (loaded.volcano, loaded.fairshare) if each is not None]
    if disciplines:
        steps = (*chain(*disciplines), *(STEPS if steps is None else steps))
    if loaded.queued is None:
        return Rounds(
            intake,
            placement,
            seed=seed,
            now_s=loaded.now_s,
            steps=steps,
            keep_terminating=keep_terminating,
            recreate=recreate,
        )
    queues, pods = loaded.queued.kueue.queues, loaded.queued.pods
    prover = None
    if queues.settings.placement == "proven":
        prover = Proof(queues, intake, placement, pods.let_loose, pods.running_of, seed, pods.former)
    return QueueRounds(
        loaded.queued,
        intake,
        placement,
        seed=seed,
        now_s=loaded.now_s,
        steps=steps,
        keep_terminating=keep_terminating,
        recreate=recreate,
        prover=prover,
    )


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        sys.stderr.write(f"shoal: warning: {one_line(warning)}\n")


def loaded_of(
    documents: Sequence[Document],
    policy: str = "Shoal",
    scheduler_config: Path | None = None,
    limits: Limits | None = None,
    discipline: str = "",
) -> Loaded:
    """The same of documents that have been read; nothing is said of what was left out. `discipline`: whose queues
    decide; those of all that are present if it is empty."""
    documents = queues_of_discipline(documents, discipline)
    profiles = _profiles(scheduler_config)
    builder = _policy(policy)
    added: dict[str, NodeAffinity | None] = {}
    if profiles is not None:
        added = {profile.scheduler_name: profile.added_affinity for profile in profiles.profiles}
    queues = _queues(documents)
    manifests = manifest_cluster_of(without_queue_objects(documents if queues is None else queues.documents), added)
    manifests.queued = frozenset() if queues is None else queues.pods
    hold_queued_pods(documents, manifests)
    queues_of_kai, shards = kai_queues(documents), kai_shards(documents)
    fairshare = discipline_of(queues_of_kai, shards)
    if fairshare is not None:
        manifests.events = grouped(queues_of_kai, manifests.events, shards)
    settings = volcano_settings(documents)
    volcano = volcano_rounds.discipline_of(
        volcano_tree(documents), volcano_groups(documents), settings, volcano_pods(documents)
    )
    warnings = [*manifests.warnings, *(settings.warnings if volcano is not None else ())]
    warnings += shards.shards.warnings if fairshare is not None else ()
    warnings += [f"{document.where}: {fault}" for document, fault in queue_faults(documents)]
    if queues is not None:
        queues.manifests.settings = queues.manifests.settings if limits is None else limits(queues.manifests.settings)
        warnings += queues.manifests.warnings
    if profiles is not None:
        warnings += profiles.warnings
        builder = _profile_for(profiles, manifests.schedulers, warnings)
    intake = Intake(Cluster())
    now_s = manifests.now_s
    queued: Queued | None = None
    if queues is None:
        for event in manifests.events:
            intake.apply(event)
    else:
        now_s = max(now_s, queues.manifests.now_s)
        queued = queues.over(intake, manifests.events, now_s)
    warnings += unmatched_selector_warnings(intake.cluster, manifests.waiting)
    warnings += misspelled_name_warnings(manifests.waiting, manifests.events, documents)
    mix = PodMix.of(class_of(event.ask) for event in manifests.events if isinstance(event, PodArrived | PodBound))
    placement = Placement(intake.cluster, builder(intake.cluster, mix))
    return Loaded(manifests, intake, placement, now_s, queued, fairshare, volcano, warnings)


def _queues(documents: Sequence[Document]) -> QueuedWorld | None:
    inventory = Inventory(documents)
    return QueuedWorld(read_queue_manifests(inventory), documents) if speaks_of_queues(inventory) else None


def _policy(name: str) -> Builder:
    chosen = parse_policies(name, tuple(POLICIES))
    if len(chosen) != 1:
        raise UserError("must name exactly one policy", where=Where(path="--policy"), fix=f"got {', '.join(chosen)}")
    return POLICIES[chosen[0]]


def _profiles(path: Path | None) -> KubeProfiles | None:
    if path is None:
        return None
    from shoal.cli.scheduler_config import read_profiles

    return read_profiles(path)


def _profile_for(profiles: KubeProfiles, schedulers: Sequence[str], warnings: list[str]) -> Builder:
    """One profile decides for all pods: the first that a waiting pod asks for, or else the first there is."""
    wanted = [profile for name in schedulers if (profile := profiles.profile(name)) is not None]
    chosen = wanted[0] if wanted else profiles.profiles[0]
    others = sorted({*schedulers} - {chosen.scheduler_name})
    if others:
        warnings.append(f"pods of {', '.join(others)} are decided by the profile {chosen.scheduler_name} as well")
    return chosen.build
