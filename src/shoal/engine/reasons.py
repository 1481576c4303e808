"""Defines why a pod waits or where it went: a reason code at once, evidence on request.

A round that refuses a thousand pods writes a thousand codes and nothing more. On request, the evidence is
gathered once per ask and version of the facts: how many nodes each rule turned away, and the node that came nearest.
Words for people are made from it in `views`, so that command line, dashboard and events say the same.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Code(StrEnum):
    """Causes, stable names that tests, metrics and people's alerts may rely on."""

    PLACED = "Placed"
    NOMINATED = "Nominated"
    PREEMPTED = "Preempted"
    CONSOLIDATED = "Consolidated"
    GANG = "GangDoesNotFit"
    GANG_TOO_SMALL = "GangTooSmall"
    GANG_UNKNOWN = "GangUnknown"
    GANG_MALFORMED = "GangMalformed"
    NO_NODES = "NoNodes"
    NOWHERE = "NoNodeFits"

    NODE_NAME = "NodeNameMismatch"
    UNSCHEDULABLE = "NodeUnschedulable"
    REFUSING = "NodeRefusedPod"
    AFFINITY = "NodeAffinityMismatch"
    TAINTED = "UntoleratedTaint"
    SHARING_UNSEEN = "GpuSharingUnseen"
    INSTANCES = "GpusAreMigInstances"
    GPU_MODEL = "GpuModelMismatch"
    PORTS = "HostPortTaken"
    INSUFFICIENT = "Insufficient"
    TOO_MANY_PODS = "TooManyPods"
    NO_DEVICE = "NoDeviceFits"

    SPREAD = "TopologySpreadMismatch"
    SPREAD_LABEL = "TopologySpreadLabelMissing"
    POD_AFFINITY = "PodAffinityMismatch"
    POD_ANTI_AFFINITY = "PodAntiAffinityMismatch"
    KEPT_AWAY = "ExistingPodsAntiAffinity"

    GATED = "SchedulingGated"

    TOPOLOGY = "TopologyDoesNotFit"

    NO_MIG_PLACE = "NoMigPlace"
    FAR_APART = "DevicesTooFarApart"

    CLAIM_UNUSABLE = "ClaimUnusable"
    CLAIM_ELSEWHERE = "ClaimAllocatedElsewhere"
    CLAIMS = "ClaimsNotAllocatable"

    VOLUMES = "VolumesNotReady"
    FORBIDDEN = "Forbidden"
    """An API server would not create the pod."""

    OVER_LIMIT = "OverLimit"
    """A queue is at its limit."""
    OVER_QUOTA = "NonPreemptibleOverQuota"
    """Work that is never preempted stays within the quota of its queue."""
    STALE = "StaleGang"
    """Fewer pods of the gang run than it needs, and have for too long."""

    NEVER_PREEMPTS = "NeverPreempts"
    NO_VICTIMS = "NoVictims"
    ONLY_HIGHER = "OnlyHigherPriority"
    TOO_EARLY = "MinimumRuntime"
    BUDGETS = "BudgetsForbid"
    NOT_ENOUGH = "NotEnoughEvenWithPreemption"


class Cause(msgspec.Struct, frozen=True, order=True):
    """One rule's part in a refusal; `detail` names the resource, taint or model it is about."""

    code: Code
    detail: str
    nodes: int


EMPTY_GPUS = "empty GPUs"
GPU_PIECE = "thousandths of one GPU"
GPU_REPLICAS = "GPU replicas"
"""Shortfalls of devices are counted in these."""


class Shortfall(msgspec.Struct, frozen=True):
    """What the nearest node lacks of one resource. Amounts are in the engine's units: cpu in thousandths of a core."""

    resource: str
    asked: int
    free: int
    total: int
    """What the node would have if it were empty; where that is less than asked, waiting does not help."""
    code: Code = Code.INSUFFICIENT


class Evidence(msgspec.Struct, frozen=True):
    """The whole story of a refusal. A node may count under several causes, as in kube-scheduler's own messages."""

    nodes: int
    causes: tuple[Cause, ...]
    fitting: int = 0
    """Nodes with capacity; not zero when the facts have changed since the refusal."""
    nearest: str = ""
    shortfalls: tuple[Shortfall, ...] = ()
    """What the nearest node lacks; there is none when no node passes the rules about labels, taints and models."""
    main: Cause | None = None
    """The commonest cause among the nodes that the pod's own conditions on nodes allow; of all nodes, where they allow
    none. Its count is that of these nodes. None where nothing refuses the pod."""

    @property
    def code(self) -> Code:
        """The main cause; where the pod would fit by now, there is none."""
        if self.nodes == 0:
            return Code.NO_NODES
        if self.fitting or self.main is None:
            return Code.NOWHERE
        return self.main.code
