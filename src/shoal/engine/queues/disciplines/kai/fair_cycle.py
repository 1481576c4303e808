"""Holds what the steps of one cycle of the fair-share discipline share: queues, jobs, shares, and an account that
follows the ledger.

Whatever a step places or takes off is charged to the job's queue and its ancestors, and is undone with the ledger, so
that a failed trial leaves neither placements nor amounts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from shoal.engine.charges import Charge
from shoal.engine.cycle_state import CycleState
from shoal.engine.device_demand import COMPUTE, DeviceGrant, MemoryShares, VirtualGpus
from shoal.engine.facts import CPU, GPU_MILLI, MEMORY
from shoal.engine.gangs.attempt import place_gang
from shoal.engine.gangs.next_pods import GangDemand, PodsToPlace
from shoal.engine.gangs.search import Search
from shoal.engine.pods import PodAllocation
from shoal.engine.queues.disciplines.kai.action_counts import ActionCounts
from shoal.engine.queues.disciplines.kai.fair_facts import charge, fair_facts
from shoal.engine.queues.disciplines.kai.fair_jobs import FairJob, sum_of
from shoal.engine.queues.disciplines.kai.fair_queues import Amounts3, FairQueue, QueueNode, is_within
from shoal.engine.queues.disciplines.kai.node_pools import NodePool, pool_rows
from shoal.engine.queues.disciplines.kai.pod_amounts import gpu_options
from shoal.engine.queues.disciplines.kai.queue_order import JobsByQueue
from shoal.engine.reasons import Code


class FairshareSettings(msgspec.Struct, frozen=True):
    """What a SchedulingShard may set."""

    k: float = 1.0
    """How much the use of the past corrects weights; below 0 is 0."""
    stale_grace_s: float = 60.0
    """How long a gang may run below its minimum; negative is for ever."""
    most_movers: int = 16
    """Jobs that consolidation considers as movers for one claimant."""
    reclaim_multiplier: float = 1.0
    """The claimant's saturation counts so many times, never less than once."""
    reclaim_min_runtime_of_victim: bool = False
    """Minimum runtimes of reclaim are looked up from the victim's own queue, not from below the common ancestor."""
    depths: Mapping[str, int] = {}
    """Action -> jobs of a queue that it looks at; absent or 0 is all of them."""
    preempt_min_runtime_s: float = 0.0
    """Of queues that have none, and whose ancestors have none."""
    reclaim_min_runtime_s: float = 0.0
    has_min_runtimes: bool = True


Mark = tuple[int, int]


class FairshareCycle:
    """One cycle's facts."""

    def __init__(
        self,
        state: CycleState,
        queues: Sequence[FairQueue],
        settings: FairshareSettings,
        usage: Mapping[str, tuple[float, ...]],
        pool: NodePool | None = None,
    ) -> None:
        """`pool`: the nodes about which the cycle decides; None for all."""
        self.state = state
        self.cluster = state.cluster
        self.settings = settings
        facts = fair_facts(state.cluster, queues, settings.k, usage, pool)
        self.pool = pool
        self.tree, self.jobs, self.amounts, self.total = facts.tree, facts.jobs, facts.amounts, facts.total
        self._log: list[tuple[FairJob, Amounts3]] = []
        """What was charged, in order; negative amounts were taken off."""
        self.why: dict[str, Code] = {}
        """Job -> why it was not served."""
        self.due_s = math.inf
        """When the passing of time alone may change a decision."""
        self.is_final = True
        """Whether the next cycle decides nothing if this one has not and nothing changes: not where earlier parts of it
        have, nor where pods keep their places only until their bindings are confirmed."""
        self.touched: set[FairJob] = set()
        """Jobs that were given room, or that yielded."""
        self.counts = ActionCounts()
        self.unfinished: tuple[JobsByQueue[FairJob], set[Charge]] | None = None
        """What `allocate` has left in line where the limit of a cycle cut it, and the requests that fit nowhere."""
        self.versions: dict[QueueNode, int] = {}
        """Counts the changes of what each queue holds."""

    def resume(self, state: CycleState) -> None:
        """Go on in the next cycle: this one ended before all jobs were looked at, and nothing has changed since."""
        self.state = state
        state.why.update(self.why)
        self.is_final = False
        self._log.clear()
        self.touched.clear()

    # -- limits ------------------------------------------------------------------------------------------------------

    def over(self, job: FairJob, step: Amounts3) -> tuple[Code, QueueNode] | None:
        """The queue, from the job's own up, that has no room for the step: limits hold for all work, quotas for work
        that is never preempted, and only in what is asked for."""
        for node in job.leaf.path:
            if _beyond(node.allocated, step, node.facts.limit):
                return Code.OVER_LIMIT, node
        if not job.is_preemptible:
            for node in job.leaf.path:
                if _beyond(node.non_preemptible, step, node.facts.quota):
                    return Code.OVER_QUOTA, node
        return None

    def claim_of_other_queue(self, job: FairJob) -> tuple[str, str] | None:
        """A claim on GPUs that the next step shares with others and that does not carry the label of the job's queue:
        its namespace/name, and the queue that it names."""
        for pod in job.step:
            for ref in self.cluster.pending[pod].charge.ask.claims:
                shared = self.cluster.dra.shared.find(ref.shared) if ref.shared else None
                facts = shared.facts if shared is not None else None
                if facts is not None and facts.queue != job.leaf.name and gpu_options(self.cluster, ref):
                    return ref.shared, facts.queue
        return None

    def is_beyond_quota(self, job: FairJob) -> bool:
        """Whether it is never preempted and would exceed a quota, whatever work yields."""
        if job.is_preemptible:
            return False
        return any(_beyond(node.non_preemptible, job.step_amounts, node.facts.quota) for node in job.leaf.path)

    def has_free_gpus(self, job: FairJob) -> bool:
        """Whether idle and departing GPUs of all nodes suffice for the next step in number."""
        cluster = self.cluster
        asked = sum(_plain_milli(cluster.pending[pod].charge) for pod in job.step)
        departing = sum(cluster.pods[pod].charge.gpu_milli for pod in cluster.terminating)
        free = cluster.gpu_free_milli
        if self.pool is not None:
            rows = pool_rows(cluster, self.pool)
            inside = set(rows.tolist())
            free = int(np.maximum(cluster.free[rows, GPU_MILLI], 0).sum())
            leaving = [cluster.pods[pod] for pod in cluster.terminating]
            departing = sum(each.charge.gpu_milli for each in leaving if each.row in inside)
        return asked <= free + departing

    def shortage(self, step: Sequence[str]) -> Amounts3 | None:
        """What all nodes together lack for a step; None if nothing, or if that cannot be counted."""
        cluster = self.cluster
        charges = [cluster.pending[pod].charge for pod in step]
        if cluster.devices.odd or any(not _plain_milli(charge) and charge.ask.devices for charge in charges):
            return None
        free = np.maximum(cluster.free[pool_rows(cluster, self.pool)], 0).sum(axis=0)
        asked = sum_of(self.amounts.of(charge) for charge in charges)
        lacks = [max(0, asked[at] - int(free[column])) for at, column in enumerate((GPU_MILLI, CPU, MEMORY))]
        return lacks if any(lacks) else None

    def covers(self, short: Amounts3, amounts: Iterable[Amounts3]) -> bool:
        """Whether what is lacking is among these amounts."""
        return is_within(short, sum_of(amounts))

    def note(self, job: FairJob, code: Code) -> None:
        """Why a job was not served, as found last."""
        self.why[job.name] = code
        self.state.why[job.name] = code

    def view_changed(self) -> None:
        """The facts are those of another time now: jobs that were decided about are read again."""
        for job in self.touched:
            job.changed()

    # -- the open trial ----------------------------------------------------------------------------------------------

    def mark(self) -> Mark:
        return self.state.ledger.mark(), len(self._log)

    def rollback(self, mark: Mark) -> None:
        self.state.ledger.rollback(mark[0])
        while len(self._log) > mark[1]:
            job, amounts = self._log.pop()
            self._charge(job, amounts, -1)
            job.changed()

    def place(self, job: FairJob, pods: Sequence[str] | None = None) -> bool:
        """Place the next step of a job, or some pods of it, all or none of them."""
        whole = pods is None
        pods = job.step if pods is None else pods
        amounts = job.sum_of_waiting(pods)
        if not self._placed(job, pods, whole=whole):
            return False
        self._note(job, amounts)
        return True

    def places(self, job: FairJob, pods: Sequence[str]) -> bool:
        """As `place`, for a trial that is charged afterwards by `charge`."""
        return self._placed(job, pods, whole=True)

    def charge(self, job: FairJob, amounts: Amounts3) -> None:
        self._note(job, amounts)

    def place_back(self, job: FairJob, before: Mapping[str, PodAllocation]) -> bool:
        """Place pods where they were, with the devices that they had, all or none of them."""
        mark = self.state.ledger.mark()
        amounts = job.sum_of_waiting(before)
        for pod, allocation in before.items():
            grant = self._grant_there(pod, allocation)
            if grant is None:
                self.state.ledger.rollback(mark)
                return False
            self.state.ledger.place(pod, allocation.row, grant[0])
        self._note(job, amounts)
        return True

    def put(self, job: FairJob, destinations: Iterable[tuple[str, int, DeviceGrant | None]]) -> None:
        """Place pods where a trial found places for them."""
        destinations = list(destinations)
        amounts = job.sum_of_waiting(pod for pod, _, _ in destinations)
        for pod, row, grant in destinations:
            self.state.ledger.place(pod, row, grant)
        self._note(job, amounts)

    def take_off(self, job: FairJob, pods: Sequence[str], *, returns: bool) -> dict[str, PodAllocation]:
        """Take pods off their nodes; with `returns` they wait for another place."""
        of, cluster, ledger = self.amounts.of, self.cluster, self.state.ledger
        before = {pod: cluster.pods[pod] for pod in pods}
        for pod in pods:
            if returns:
                ledger.withdraw(pod)
            else:
                ledger.evict(pod)
        amounts = sum_of(of(allocation.charge) for allocation in before.values())
        self._note(job, (-amounts[0], -amounts[1], -amounts[2]))
        return before

    # -- inside ------------------------------------------------------------------------------------------------------

    def _placed(self, job: FairJob, pods: Sequence[str], *, whole: bool) -> bool:
        fitter, ledger = self.state.fitter, self.state.ledger
        mark = ledger.mark()
        if job.is_simple:
            for pod in pods:
                if not fitter.pod(pod):
                    ledger.rollback(mark)
                    return False
            return True
        gang, claim = job.gang, job.claim
        if claim is None:
            return False
        if whole:
            return place_gang(fitter, gang) is Code.PLACED
        wanted = _only(claim.want, set(pods))
        running = [pod for pod in gang.running if pod not in self.cluster.terminating]
        return wanted is not None and Search(fitter, running).place(wanted)

    def _grant_there(self, pod: str, before: PodAllocation) -> tuple[DeviceGrant | None] | None:
        """The devices that the pod had if they are free, else others of its node; None if it does not fit there."""
        cluster = self.cluster
        waiting = cluster.pending[pod]
        chosen = self.state.placement.choose(waiting.charge, 0, waiting.who, np.array([before.row]))
        if chosen is None:
            return None
        grant = before.grant
        if grant is None or chosen[1] == grant:
            return (grant,)
        compute = cluster.devices.compute[before.row]
        is_free = not grant.claims and all(
            plane == COMPUTE and compute.item(device) >= amount for device, plane, amount in grant.parts
        )
        return (grant if is_free else chosen[1],)

    def _note(self, job: FairJob, amounts: Amounts3) -> None:
        self._charge(job, amounts, 1)
        self._log.append((job, amounts))
        job.changed()

    def _charge(self, job: FairJob, amounts: Amounts3, sign: int) -> None:
        charge(job, amounts, sign)
        for node in job.leaf.path:
            self.versions[node] = self.versions.get(node, 0) + 1


def _beyond(held: Amounts3, step: Amounts3, bounds: Sequence[int | None]) -> bool:
    return any(
        more > 0 and bound is not None and have + more > bound
        for have, more, bound in zip(held, step, bounds, strict=True)
    )


def _plain_milli(charge: Charge) -> int:
    """What it asks of GPUs that are not cut, where that does not depend on the GPU."""
    return 0 if isinstance(charge.ask.devices, MemoryShares | VirtualGpus) else charge.gpu_milli


def _only(want: PodsToPlace, pods: set[str]) -> PodsToPlace | None:
    """What is wanted, without all but some pods; None if nothing is left of it."""
    demands = []
    for demand in want.demands:
        chosen = [pod for pod in demand.pods if pod in pods]
        if chosen:
            demands.append(GangDemand(chosen, len(chosen)))
    parts = [part for part in (_only(part, pods) for part in want.parts) if part is not None]
    if not demands and not parts:
        return None
    return PodsToPlace(want.name, want.requirement, want.running, demands, parts, len(parts), want.was_on)
