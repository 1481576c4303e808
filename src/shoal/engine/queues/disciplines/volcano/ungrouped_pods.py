"""Keeps the running pods of Volcano's scheduler whose PodGroups are not known yet, with the queues in which they count.

A pod has none for a moment when this part takes over: its PodGroup is created, then the pod names it, and the watches
of both kinds may report that in any order. Such a pod counts in its queue from the first session on. Otherwise pods
that wait would be placed as if the queue were empty, and its capability would be exceeded.

A pod whose PodGroup was deleted counts for nothing, as in Volcano.
"""

from __future__ import annotations

from shoal.engine.queues.disciplines.volcano.objects import DEFAULT_QUEUE, QUEUE_ANNOTATION, SCHEDULER, GroupPod


class UngroupedPods:
    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, str]] = {}
        """Pod -> its queue, and the group that it names and that is not known; empty if it names none."""
        self._by_group: dict[str, set[str]] = {}
        """A group that is not known -> the pods that name it."""

    @property
    def queues(self) -> dict[str, str]:
        """Pod -> queue, in a stable order."""
        return {key: queue for key, (queue, _) in sorted(self._pods.items())}

    def put(self, key: str, pod: GroupPod, *, is_group_known: bool) -> bool:
        """`is_group_known`: of the group that the pod names. Returns whether a session would read anything else."""
        is_running = bool(pod.spec.node_name) and not pod.is_terminating and not pod.is_finished
        if not is_running or pod.spec.scheduler_name != SCHEDULER or is_group_known:
            return self.drop(key)
        before = self._pods.get(key)
        if not pod.group:
            queue = pod.metadata.annotations.get(QUEUE_ANNOTATION) or DEFAULT_QUEUE
            self._pods[key] = queue, ""
            return before is None or before[0] != queue
        if before is not None:
            group = f"{pod.metadata.namespace}/{pod.group}"
            self._pods[key] = before[0], group
            self._by_group.setdefault(group, set()).add(key)
        return False

    def drop(self, key: str) -> bool:
        found = self._pods.pop(key, None)
        if found is not None and found[1] in self._by_group:
            self._by_group[found[1]].discard(key)
        return found is not None

    def group_seen(self, group: str) -> None:
        """The pods that name the group count as its pods from now on."""
        for key in self._by_group.pop(group, ()):
            if self._pods.get(key, ("", ""))[1] == group:
                del self._pods[key]
