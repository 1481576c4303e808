"""Builds the document of a decision that `shoal decide --json` prints.

Lists are never absent, so that a reader needs no case for "nothing". Every round after which pods still wait lists
their refusals, so the last round alone shows the result.
"""

from __future__ import annotations

import msgspec

from shoal.units.errors import UserError, one_line

Device = int | str
"""The index of a device; for a part of one that has a place of its own, `<index>:<profile>@<start>`."""


class Placed(msgspec.Struct, frozen=True):
    """A pod and where it runs, or (nominated) where room is promised to it."""

    pod: str
    node: str
    devices: list[Device] = []


class Moved(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    pod: str
    source: str
    target: str


class Evicted(msgspec.Struct, frozen=True, rename={"beneficiary": "for"}):
    pod: str
    beneficiary: str
    """The pod or gang it yields to."""
    reason: str


class Reason(msgspec.Struct, frozen=True):
    """A code of the closed list, the line that people know from kube-scheduler, and what would help."""

    code: str
    message: str
    help: str


class Refused(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A pod or a gang that waits; the other one is left out."""

    pod: str = ""
    group: str = ""
    reason: Reason

    @property
    def name(self) -> str:
        return self.pod or self.group


class Domain(msgspec.Struct, frozen=True):
    """So many pods in one domain: the values of its levels, or of the host name alone where hosts are the lowest."""

    values: list[str]
    count: int


class AdmittedPods(msgspec.Struct, frozen=True):
    """One pod set of an admitted workload."""

    name: str
    count: int
    flavors: dict[str, str] = {}
    """By resource."""
    topology: list[Domain] = []


class Admitted(msgspec.Struct, frozen=True, rename={"pod_sets": "podSets"}):
    """A workload whose quota was reserved; its pods may come."""

    workload: str
    queue: str
    """Key of its local queue."""
    pod_sets: list[AdmittedPods] = []


class Reserved(Admitted, frozen=True):
    """One whose quota was reserved and whose pods may not come yet."""

    checks: list[str] = []
    """Admission checks that have not been passed."""


class Preempted(msgspec.Struct, frozen=True, rename={"beneficiary": "for"}):
    workload: str
    beneficiary: str
    """The workload it is preempted for; empty if there is none."""
    reason: str


class Waiting(msgspec.Struct, frozen=True):
    workload: str
    queue: str
    state: str
    """`active`: it is tried again in its turn; `parked`: not before something changes."""
    reason: Reason


class CycleResult(msgspec.Struct, frozen=True):
    placed: list[Placed] = []
    nominated: list[Placed] = []
    moved: list[Moved] = []
    evicted: list[Evicted] = []
    admitted: list[Admitted] = []
    preempted: list[Preempted] = []
    waiting: list[Waiting] = []
    """These three speak of queues, and stay empty where there are none."""
    refused: list[Refused] = []
    unproven: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Workloads that quota alone admitted: it was not checked that their pods have places. Absent if there are none."""


class InputError(msgspec.Struct, frozen=True):
    """An error of one object of the input, which was left out of the decision."""

    file: str
    document: int | None
    """Counted from 1; null if the whole file is wrong."""
    object: str
    """Kind and name, as in `Pod team-a/train`."""
    field: str
    message: str
    fix: str

    @classmethod
    def of(cls, error: UserError) -> InputError:
        where = error.where
        return cls(where.file, where.document, where.obj, where.path, one_line(error.what), one_line(error.fix))


class Decision(msgspec.Struct, frozen=True):
    """All rounds; `quiet` when the last one changed nothing."""

    rounds: list[CycleResult] = []
    quiet: bool = False
    errors: list[InputError] = []


def to_json(decision: Decision) -> str:
    return msgspec.json.format(msgspec.json.encode(decision), indent=1).decode()
