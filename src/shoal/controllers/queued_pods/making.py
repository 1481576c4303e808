"""The beginning: a Workload for pods that have none."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

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
from shoal.controllers.queued_pods.naming import workload_name
from shoal.controllers.queued_pods.priorities import Priorities, UnknownClassError
from shoal.controllers.queued_pods.refusing import Refusing
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_pods.serving import Parent
from shoal.controllers.queued_pods.words import IS_GROUP, MOST_ROLES, POD_INDEX
from shoal.controllers.queued_work.kueue_names import JOB_UID, REPLACES, SLICE_NAME
from shoal.store.live.item import Item
from shoal.store.live.refusals import AlreadyExistsError, InvalidError
from shoal.units.errors import UserError


class Making:
    def __init__(self, hand: Hand, priorities: Priorities, refusing: Refusing) -> None:
        self._hand = hand
        self._priorities = priorities
        self._refusing = refusing

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
            await self._refuse(scene, "ErrWorkloadCompose", str(fault))
            return
        members, excess = first_members(runnable, total)
        await self._hand.drop(excess)
        members = sorted(members, key=lambda one: one[1].age())
        drafts = _drafts(members, total)
        if len(drafts) > MOST_ROLES:
            await self._refuse(scene, "ErrWorkloadCompose", f"pod group can't include more than {MOST_ROLES} roles")
            return
        owners = [owner_reference("Pod", "v1", pod.metadata.name, pod.uid) for _, pod in members]
        await self._create(scene, drafts, owners, {}, {IS_GROUP: "true"})

    async def _for_parent(self, scene: Scene, parent: Parent) -> None:
        meta = parent.meta
        reference = as_controller(owner_reference(parent.kind.name, parent.kind.api_version, meta["name"], meta["uid"]))
        await self._create(scene, parent.pod_sets, [reference], {JOB_UID: meta["uid"]}, {})

    async def again(self, scene: Scene, parent: Parent, before: Item) -> bool:
        """A Workload that is to take the place of one that its owner has outgrown; whether it was made. Where none
        can be, nothing is wrong with the pods that run."""
        meta = parent.meta
        name = workload_name(parent.kind, meta["name"], f"{meta['uid']}\n{meta.get('generation') or 0}")
        reference = as_controller(owner_reference(parent.kind.name, parent.kind.api_version, meta["name"], meta["uid"]))
        notes = {SLICE_NAME: scene.key[1], REPLACES: f"{before.namespace}/{before.name}"}
        made = structs.replace(scene, key=(scene.key[0], name), pods=())
        return await self._create(made, parent.pod_sets, [reference], {JOB_UID: meta["uid"]}, notes)

    async def _create(
        self,
        scene: Scene,
        drafts: Sequence[PodSetDraft],
        owners: Sequence[dict[str, object]],
        labels: dict[str, str],
        notes: dict[str, str],
    ) -> bool:
        parent = scene.parent
        of = parent.labels if parent is not None else scene.pods[0][1].metadata.labels
        try:
            rank = self._priorities.of(of, drafts[0].template["spec"])
            draft = Draft(*scene.key, _queue(scene), drafts, owners, labels, notes, rank, longest_of(of))
            await self._hand.create(draft.to_api())
        except AlreadyExistsError:
            return False
        except UnknownClassError as error:
            await self._refuse(scene, "WorkloadPriorityClassNotFound", str(error))
        except InvalidError as error:
            await self._refuse(scene, "ErrWorkloadCompose", error.what)
        except UserError as error:
            await self._refuse(scene, "ErrWorkloadCompose", str(error))
        else:
            self._created(scene, f"Created Workload: {'/'.join(scene.key)}")
            return True
        return False

    async def _refuse(self, scene: Scene, reason: str, message: str) -> None:
        """Nothing can be made of these: whoever looks at any of them is told why."""
        await self._refusing.tell(scene, (reason, message))

    def _created(self, scene: Scene, message: str) -> None:
        if scene.parent is not None:
            self._hand.tell_object(scene.parent.obj, scene.parent.kind, "CreatedWorkload", message)
        else:
            self._hand.tell(scene.pods[0][1], "CreatedWorkload", message)


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
