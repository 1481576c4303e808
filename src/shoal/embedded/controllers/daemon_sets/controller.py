"""Reconciles DaemonSets: creates and deletes their pods on nodes; `plan.py` decides which."""

from __future__ import annotations

from msgspec import structs

from shoal.client.context import Context, Controller
from shoal.client.item import Item, Key, Obj
from shoal.client.kind import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from shoal.client.loop import Loop
from shoal.client.owned_pods.owner_wakeups import GATHER_S, OwnerWakeups
from shoal.client.owned_pods.ownership import Claims, controller_reference, selector_of_spec
from shoal.client.owned_pods.pod_control import PodControl, pod_from_template, slow_start_batch
from shoal.client.owned_pods.pod_view import next_available_s
from shoal.embedded.controllers.daemon_sets.backoff import Backoff
from shoal.embedded.controllers.daemon_sets.daemon_pod import GENERATION, HASH, DaemonPod, Template, by_node, daemon_pod
from shoal.embedded.controllers.daemon_sets.eligibility import bound_to
from shoal.embedded.controllers.daemon_sets.nodes import DaemonNodes
from shoal.embedded.controllers.daemon_sets.plan import Changes, DaemonSetState, placement_changes, update_changes
from shoal.embedded.controllers.revisions.history import History
from shoal.units.errors import ShoalError
from shoal.units.int_or_percent import amount_of

_MAX_PODS_PER_SYNC = 250
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def daemon_set_controller(context: Context) -> Controller:
    return DaemonSets(context)


class DaemonSets:
    def __init__(self, context: Context) -> None:
        self.name = context.name
        # Its user has another name than the reporting component of its Events.
        self._context = context = structs.replace(context, events=context.events.named("daemonset-controller"))
        self._sets = context.informers.of(DAEMON_SETS)
        self._pods = context.informers.of(PODS)
        self._owner_wakeups = OwnerWakeups(DAEMON_SETS, self._sets, selector_of_spec)
        self._backoff = Backoff()
        self._uids: dict[Key, str] = {}
        self._loop = Loop(context, self.reconcile)
        self._loop.follow(DAEMON_SETS)
        self._loop.need(PODS, NODES, CONTROLLER_REVISIONS)
        self._owner_wakeups.wake(self._loop, self._pods)
        self._nodes = DaemonNodes(context.informers.of(NODES), self._nodes_changed)

    async def run(self) -> None:
        await self._loop.run()

    async def reconcile(self, key: Key) -> float | None:
        item = self._sets.get(*key)
        if item is None or self._uids.get(key, item.uid) != item.uid:
            self._forget(key)
        if item is None:
            return None
        self._uids[key] = item.uid
        obj = {**item.obj(), "kind": DAEMON_SETS.name, "apiVersion": DAEMON_SETS.api_version}
        if "deletionTimestamp" in obj["metadata"]:
            return None
        history = History(self._context, (DAEMON_SETS, obj), self._owner_wakeups.selector(item), HASH)
        latest = await history.settle()
        template = Template(
            latest["metadata"]["labels"][HASH],
            (obj["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, ""),
        )
        state = await self._read_state(obj, item, template)
        changes = placement_changes(state)
        again_s = self._backoff_s(obj, changes)
        error = await self._apply(obj, template, changes)
        if error is None and obj["spec"]["updateStrategy"]["type"] == "RollingUpdate":
            state = await self._read_state(obj, item, template)
            error = await self._apply(obj, template, update_changes(state))
        state = await self._read_state(obj, item, template)
        await self._trim(obj, history, latest, state)
        await self._write_status(obj, state, history)
        if error is not None:
            raise error
        pods = [pod for pods in state.pods.values() for pod in pods]
        wait_s = next_available_s(list(pods), state.min_ready_s, state.now_s)
        return min((one for one in (again_s, wait_s) if one is not None), default=None)

    async def _read_state(self, obj: Obj, item: Item, template: Template) -> DaemonSetState:
        claims = Claims(self._context.api, (DAEMON_SETS, PODS), obj, self._owner_wakeups.selector(item))
        pods = by_node(daemon_pod(pod) for pod in await claims.claimed(self._pods))
        eligibility = self._nodes.eligibility(obj)
        wanted = sum(eligibility.runs for eligibility in eligibility.values())
        rolling = obj["spec"]["updateStrategy"].get("rollingUpdate") or {}
        return DaemonSetState(
            eligibility,
            pods,
            template,
            obj["spec"].get("minReadySeconds", 0),
            self._context.clock.seconds(),
            amount_of(rolling.get("maxSurge"), wanted, up=True),
            amount_of(rolling.get("maxUnavailable"), wanted, up=True),
        )

    # -- writes -----------------------------------------------------------------------------------------------------

    def _backoff_s(self, obj: Obj, changes: Changes) -> float | None:
        """Finished pods are deleted with the others, except on nodes where pods fail repeatedly."""
        again_s = None
        now_s, meta = self._context.clock.seconds(), obj["metadata"]
        for pod in changes.ended:
            where = f"{pod.metadata.namespace}/{pod.name} on node {pod.node()}"
            if pod.status.phase == "Succeeded":
                words = f"Found succeeded daemon pod {where}, will try to delete it"
                self._context.events.record(obj, "SucceededDaemonPod", words)
                changes.delete.append(pod)
                continue
            key = (meta["uid"], pod.node())
            left_s = self._backoff.left_s(key, now_s)
            if left_s > 0:
                again_s = left_s if again_s is None else min(again_s, left_s)
                continue
            self._backoff.next(key, now_s)
            words = f"Found failed daemon pod {where}, will try to kill it"
            self._context.events.record(obj, "FailedDaemonPod", words, type_="Warning")
            changes.delete.append(pod)
        return again_s

    async def _apply(self, obj: Obj, template: Template, changes: Changes) -> ShoalError | None:
        hand = PodControl(self._context, obj)
        reference = controller_reference(DAEMON_SETS, obj["metadata"])
        spec = obj["spec"]["template"]["spec"]

        async def create(node: str) -> None:
            pod = pod_from_template({**obj["spec"]["template"], "spec": bound_to(spec, node)}, obj, reference)
            labels = {HASH: template.hash} | ({GENERATION: template.generation} if template.generation else {})
            pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
            await hand.create(pod)

        async def delete(pod: DaemonPod) -> None:
            await hand.delete(pod)

        _, error = await slow_start_batch(changes.create[:_MAX_PODS_PER_SYNC], create)
        _, other = await slow_start_batch(changes.delete[:_MAX_PODS_PER_SYNC], delete)
        return error or other

    # -- history and status -----------------------------------------------------------------------------------------

    async def _trim(self, obj: Obj, history: History, latest: Obj, state: DaemonSetState) -> None:
        live = {pod.metadata.labels.get(HASH, "") for pods in state.pods.values() for pod in pods}
        in_use = {one["metadata"]["name"] for one in history.all if one["metadata"]["labels"].get(HASH) in live}
        in_use.add(latest["metadata"]["name"])
        # Revisions in use count too, as in Kubernetes.
        limit = obj["spec"].get("revisionHistoryLimit", 10) - (len(in_use) - 1)
        await history.trim(in_use, max(limit, 0))

    async def _write_status(self, obj: Obj, state: DaemonSetState, history: History) -> None:
        status = daemon_set_status(obj, state, history.collisions)
        if status != (obj.get("status") or {}):
            await self._context.api.update(DAEMON_SETS, {**obj, "status": status}, "status")

    # -- event handlers ---------------------------------------------------------------------------------------------

    def _nodes_changed(self) -> None:
        for item in self._sets:
            self._loop.wake(item.key, GATHER_S)

    def _forget(self, key: Key) -> None:
        self._owner_wakeups.forget(key)
        uid = self._uids.pop(key, "")
        self._backoff.forget(uid)
        self._nodes.forget(uid)


def daemon_set_status(obj: Obj, state: DaemonSetState, collisions: int | None) -> Obj:
    """The status; on a node with several pods the oldest one counts."""
    before = obj.get("status") or {}
    wanted = scheduled = ready = available = updated = astray = 0
    for node, eligibility in state.eligibility.items():
        pods = state.pods.get(node, [])
        if not eligibility.runs:
            astray += bool(pods)
            continue
        wanted += 1
        if not pods:
            continue
        scheduled += 1
        ready += pods[0].is_ready()
        available += state.is_available(pods[0])
        updated += pods[0].is_of(state.template)
    numbers = {
        "updatedNumberScheduled": updated,
        "numberAvailable": available,
        "numberUnavailable": wanted - available,
    }
    status = {
        "currentNumberScheduled": scheduled,
        "numberMisscheduled": astray,
        "desiredNumberScheduled": wanted,
        "numberReady": ready,
        "observedGeneration": obj["metadata"].get("generation", 0),
        **{key: count for key, count in numbers.items() if count},
    }
    if collisions:
        status["collisionCount"] = collisions
    return status | ({"conditions": before["conditions"]} if before.get("conditions") else {})
