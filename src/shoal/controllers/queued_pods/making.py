"""The beginning: a Workload for pods that have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from shoal.controllers.queued_pods.composing import (
    Draft,
    PodSetDraft,
    as_controller,
    longest_of,
    owner_reference,
    template_of,
)
from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.membership import GroupError, Pods, counts_of, first_members, total_of
from shoal.controllers.queued_pods.priorities import Priorities, UnknownClassError
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_pods.serving import Parent
from shoal.controllers.queued_pods.words import IS_GROUP, MOST_ROLES, POD_INDEX
from shoal.controllers.queued_work.words import JOB_UID
from shoal.store.live.item import Item, Key
from shoal.store.live.refusals import AlreadyExistsError, InvalidError
from shoal.units.errors import UserError

_MOST_TOLD = 10_000


class Making:
    def __init__(self, hand: Hand, priorities: Priorities) -> None:
        self._hand = hand
        self._priorities = priorities
        self._told: dict[Key, str] = {}
        """What was last said of those that nothing can be made of: once, however often they are looked at."""

    async def begin(self, scene: Scene) -> None:
        """There is no Workload of that name."""
        await self._hand.release([one for one in scene.pods if one[1].is_lost()])
        astray = [one for one in scene.pods if one[1].runs() and not one[1].is_terminating()]
        if astray:
            await self._hand.stop(astray, "NoMatchingWorkload", "No matching Workload; restarting pod")
        elif scene.parent is not None:
            await self._for_parent(scene, scene.parent)
        elif scene.unit == "group":
            await self._for_group(scene)
        elif scene.pods:
            await self._for_pod(scene)

    async def _for_pod(self, scene: Scene) -> None:
        pods = scene.pods
        item, pod = pods[0]
        if pod.is_finished() or pod.is_terminating():
            await self._hand.release(pods)
            return
        reference = as_controller(owner_reference("Pod", "v1", pod.metadata.name, pod.uid))
        drafts = [PodSetDraft("main", template_of(item.obj()), 1)]
        await self._create(scene, drafts, [reference], {JOB_UID: pod.uid}, {})

    async def _for_group(self, scene: Scene) -> None:
        runnable = [one for one in scene.pods if not one[1].is_lost() and not one[1].is_terminating()]
        if not runnable:
            return
        try:
            total = total_of(runnable, scene.key[1])
        except GroupError as fault:
            self._tell(scene, "ErrWorkloadCompose", str(fault), is_bad=True)
            return
        members, excess = first_members(runnable, total)
        await self._hand.drop(excess)
        members = sorted(members, key=lambda one: one[1].age())
        drafts = _drafts(members, total)
        if len(drafts) > MOST_ROLES:
            words = f"pod group can't include more than {MOST_ROLES} roles"
            self._tell(scene, "ErrWorkloadCompose", words, is_bad=True)
            return
        owners = [owner_reference("Pod", "v1", pod.metadata.name, pod.uid) for _, pod in members]
        await self._create(scene, drafts, owners, {}, {IS_GROUP: "true"})

    async def _for_parent(self, scene: Scene, parent: Parent) -> None:
        meta = parent.meta
        reference = as_controller(owner_reference(parent.kind.name, parent.kind.api_version, meta["name"], meta["uid"]))
        await self._create(scene, parent.pod_sets, [reference], {JOB_UID: meta["uid"]}, {})

    async def _create(
        self,
        scene: Scene,
        drafts: Sequence[PodSetDraft],
        owners: Sequence[dict[str, object]],
        labels: dict[str, str],
        notes: dict[str, str],
    ) -> None:
        parent = scene.parent
        of = parent.labels if parent is not None else scene.pods[0][1].metadata.labels
        try:
            rank = self._priorities.of(of, drafts[0].template["spec"])
            draft = Draft(*scene.key, _queue(scene), drafts, owners, labels, notes, rank, longest_of(of))
            await self._hand.create(draft.to_api())
        except AlreadyExistsError:
            return
        except UnknownClassError as error:
            self._tell(scene, "WorkloadPriorityClassNotFound", str(error), is_bad=True)
        except InvalidError as error:
            self._tell(scene, "ErrWorkloadCompose", error.what, is_bad=True)
        except UserError as error:
            self._tell(scene, "ErrWorkloadCompose", str(error), is_bad=True)
        else:
            self._tell(scene, "CreatedWorkload", f"Created Workload: {'/'.join(scene.key)}")

    def _tell(self, scene: Scene, reason: str, message: str, *, is_bad: bool = False) -> None:
        if is_bad and self._told.get(scene.key) == message:
            return
        if is_bad and len(self._told) < _MOST_TOLD:
            self._told[scene.key] = message
        elif not is_bad:
            self._told.pop(scene.key, None)
        type_: Literal["Normal", "Warning"] = "Warning" if is_bad else "Normal"
        if scene.parent is not None:
            self._hand.tell_object(scene.parent.obj, scene.parent.kind, reason, message, type_)
        else:
            self._hand.tell(scene.pods[0][1], reason, message, type_)


def _queue(scene: Scene) -> str:
    return scene.parent.queue if scene.parent is not None else scene.pods[0][1].queue


def _drafts(members: Pods, total: int) -> list[PodSetDraft]:
    """One pod set for each role; its template is its oldest pod's."""
    first: dict[str, Item] = {}
    for item, _ in members:
        first.setdefault(role_of(item), item)
    return [
        PodSetDraft(role, template_of(first[role].obj()), count, POD_INDEX)
        for role, count in counts_of(members, total).items()
    ]
