"""What a readiness check consists of, and what it finds.

Guarantees: a check that lacks its input is `not run`, never `pass`; a failed check says how to correct it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import msgspec

from shoal.policy.advice import Obj
from shoal.policy.diagnosis.cluster_facts import DiagnosedCluster
from shoal.policy.kinds import GroupKind

ReadinessState = Literal["pass", "fail", "manual", "not applicable", "not run"]
STATES: Final[tuple[ReadinessState, ...]] = ("pass", "fail", "manual", "not applicable", "not run")


class Outcome(msgspec.Struct, frozen=True):
    state: ReadinessState
    evidence: tuple[str, ...] = ()
    fix: str = ""
    commands: tuple[str, ...] = ()
    corrections: tuple[Obj, ...] = ()
    """Objects that may be applied without harm to what runs."""


def passed(*evidence: str) -> Outcome:
    return Outcome("pass", evidence)


def failed(evidence: str | Sequence[str], fix: str, *commands: str, corrections: Sequence[Obj] = ()) -> Outcome:
    told = (evidence,) if isinstance(evidence, str) else tuple(evidence)
    return Outcome("fail", told, fix, commands, tuple(corrections))


def manual(why: str, fix: str, *commands: str) -> Outcome:
    """Only a person can judge it."""
    return Outcome("manual", (why,), fix, commands)


def not_applicable(why: str) -> Outcome:
    return Outcome("not applicable", (why,))


def not_run(why: str, *commands: str) -> Outcome:
    return Outcome("not run", (why,), commands=commands)


class RecordedHistory(msgspec.Struct, frozen=True):
    """A history of the cluster that was found beside it. Times in milliseconds since 1970."""

    place: str
    since_ms: int | None
    """None: nothing was recorded yet."""
    until_ms: int | None
    now_ms: int


class ReadinessFacts(msgspec.Struct, frozen=True):
    cluster: DiagnosedCluster
    utilization: tuple[float, float] = (65, 85)
    """The range of the mean utilization of all GPUs that is the target, in percent."""
    least_memory: float = 80
    """The least part of the held GPU memory that is used, in percent."""
    smoke: Mapping[str, Outcome] = {}
    """Results of smoke tests, by the id of their check."""
    history: RecordedHistory | None = None
    """None where it is not known whether there is one."""


class ReadinessCheck(msgspec.Struct, frozen=True):
    id: str
    title: str
    judge: Callable[[ReadinessFacts], Outcome]
    needs: tuple[GroupKind, ...] = ()
    """Kinds without which the check cannot run."""
    rules: tuple[str, ...] = ()
    """The rules of the catalogue, by their reasons, that find nothing where the check passes."""
    is_of_tenants: bool = False
    """Whether the rules count in namespaces with GPUs only."""


class ReadinessItem(msgspec.Struct, frozen=True, rename="camel"):
    """A check with its result."""

    id: str
    section: str
    title: str
    state: ReadinessState
    evidence: tuple[str, ...] = ()
    fix: str = ""
    commands: tuple[str, ...] = ()
    corrections: tuple[Obj, ...] = ()


class ReadinessReport(msgspec.Struct, frozen=True, rename="camel"):
    items: tuple[ReadinessItem, ...]
    counts: dict[str, int]

    @property
    def is_ready(self) -> bool:
        return not self.counts["fail"]
