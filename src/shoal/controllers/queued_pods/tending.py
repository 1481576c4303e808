"""The life of a Workload of queued pods: who belongs to it, how far they have come, and its end.

A pod that is being deleted is kept by its finalizer as long as what became of it still counts.
"""

from __future__ import annotations

from collections import Counter

from shoal.controllers.queued_pods import course
from shoal.controllers.queued_pods.composing import owner_reference
from shoal.controllers.queued_pods.driving import Driving
from shoal.controllers.queued_pods.growing import Growing
from shoal.controllers.queued_pods.hand import Hand
from shoal.controllers.queued_pods.membership import Pods, is_serving, members_of
from shoal.controllers.queued_pods.pod_sight import QueuedPod
from shoal.controllers.queued_pods.roles import role_of
from shoal.controllers.queued_pods.scene import Scene
from shoal.controllers.queued_pods.workload_sight import WorkloadSight
from shoal.controllers.queued_work.rules import JobRules
from shoal.store.live.item import Item


class Tending:
    def __init__(self, hand: Hand, driving: Driving, growing: Growing) -> None:
        self._hand = hand
        self._driving = driving
        self._growing = growing

    async def end(self, scene: Scene, item: Item, workload: WorkloadSight) -> None:
        """Somebody deletes the Workload: what it stands for ends with it."""
        owners = workload.owners("Pod")
        of_it = [one for one in scene.pods if scene.unit == "parent" or one[1].uid in owners]
        if scene.unit == "parent":
            of_it = [one for one in of_it if not one[1].is_held()]
        await self._hand.stop(of_it, "WorkloadDeleted", "Workload is deleted")
        await self._hand.release(of_it)
        await self._hand.let_vanish(item)

    async def tend(self, scene: Scene, item: Item, workload: WorkloadSight, rules: JobRules) -> float | None:
        if workload.is_true("Finished"):
            await self._hand.release(scene.pods)
            await self._hand.let_vanish(item)
            return None
        if scene.parent is not None and await self._growing.settle(scene, item, workload):
            # Their news bring it back.
            return None
        found = await self._members(scene, item, workload)
        if found is None:
            return None
        item, pods, absent = found
        await self._hand.release(_uncounted(scene, pods))
        ending = _ending(scene)
        if ending is not None:
            await self._finish(scene, item, ending)
            return None
        item = await self._tell(scene, item, pods, absent, reports_pods_ready=rules.reports_pods_ready)
        return await self._driving.drive(scene, item, workload, pods, rules)

    async def _members(self, scene: Scene, item: Item, workload: WorkloadSight) -> tuple[Item, Pods, int] | None:
        """The Workload, the pods that count, and how many are missing. None where the Workload is not theirs."""
        pods = scene.pods
        if scene.unit != "group":
            return item, pods, 0
        if _ending(scene) is None and await self._is_gone(scene, item):
            return None
        members = members_of(pods, workload.counts())
        if members.is_another:
            await self._hand.discard(item)
            self._hand.tell(pods[0][1], "DeletedWorkload", f"Deleted not matching Workload: {'/'.join(scene.key)}")
            return None
        item = await self._own(item, workload, members.kept)
        await self._hand.drop(members.excess)
        await self._hand.release(members.replaced)
        return item, members.kept, members.absent

    async def _is_gone(self, scene: Scene, item: Item) -> bool:
        """Somebody deleted all pods of a group, and it was not us: nobody comes in their place."""
        if not scene.pods or not all(_was_deleted(pod) for _, pod in scene.pods):
            return False
        await self._hand.release(scene.pods)
        await self._hand.discard(item)
        return True

    async def _own(self, item: Item, workload: WorkloadSight, pods: Pods) -> Item:
        known = workload.owners("Pod")
        more = [owner_reference("Pod", "v1", pod.metadata.name, pod.uid) for _, pod in pods if pod.uid not in known]
        if not more:
            return item
        present = item.obj()["metadata"].get("ownerReferences") or []
        return await self._hand.amend(item, {"metadata": {"ownerReferences": [*present, *more]}})

    async def _finish(self, scene: Scene, item: Item, ending: course.Ending) -> None:
        await self._hand.write_status(item, lambda status, moment: course.finish(status, ending, moment))
        words = f"Workload '{'/'.join(scene.key)}' is declared finished"
        self._hand.tell(scene.pods[0][1], "FinishedWorkload", words)

    async def _tell(self, scene: Scene, item: Item, pods: Pods, absent: int, *, reports_pods_ready: bool) -> Item:
        changes: list[course.Change] = []
        counts: Counter[str] = Counter()
        if scene.unit == "group":
            counts.update(role_of(one) for one, pod in pods if pod.status.phase == "Succeeded")
            changes.append(lambda status, moment: course.tell_missing(status, absent, moment))
        if scene.parent is not None and scene.workload is not None and scene.workload.is_true("QuotaReserved"):
            now = scene.parent.counts()
            counts.update({name: count - now.get(name, 0) for name, count in scene.workload.counts().items()})
        if any(count > 0 for count in counts.values()):
            changes.append(lambda status, _: course.tell_reclaimable(status, counts))
        if reports_pods_ready:
            are_ready = bool(pods) and not absent and all(pod.is_ready() for _, pod in pods)
            if scene.parent is not None and scene.workload is not None:
                # Those that it grows by have not been let in yet.
                wanted = Counter(scene.parent.counts()) & Counter(scene.workload.counts())
                are_ready = sum(pod.is_ready() and not pod.is_over() for _, pod in pods) >= sum(wanted.values())
            changes.append(lambda status, moment: course.tell_ready(status, are_ready=are_ready, moment=moment))
        return await self._hand.write_status(item, *changes)


def _uncounted(scene: Scene, pods: Pods) -> Pods:
    """Those that are being deleted and need not be kept: pods by themselves, and those that somebody makes anew."""
    ending = [one for one in pods if one[1].is_terminating()]
    if scene.unit == "pod":
        return ending
    if scene.unit == "group" and not is_serving(scene.pods):
        return ()
    return [one for one in ending if one[1].is_over()]


def _ending(scene: Scene) -> course.Ending | None:
    """None while it goes on, and for who serves: that never ends by itself."""
    if scene.unit == "parent" or not scene.pods:
        return None
    if scene.unit == "pod":
        return course.ending_of_pod(scene.pods)
    return None if is_serving(scene.pods) else course.ending_of_group(scene.pods)


def _was_deleted(pod: QueuedPod) -> bool:
    return pod.is_terminating() and pod.is_over() and not pod.was_stopped()
