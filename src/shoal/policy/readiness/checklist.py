"""The readiness checklist: all checks by section, and their results for a cluster.

Where a rule of the catalogue decides about an item, that rule judges the objects (`rule_findings.py`), and its id is
the evidence. A check whose objects were not read is `not run`, with the reason. The checks of the section Testing are
the results of smoke tests: without them they are not run either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from shoal.policy.kinds import GroupKind
from shoal.policy.readiness import (
    data_and_pipelines,
    infrastructure,
    monitoring,
    queueing,
    scaling,
    security,
    spending,
)
from shoal.policy.readiness.outcomes import (
    STATES,
    Outcome,
    ReadinessCheck,
    ReadinessFacts,
    ReadinessItem,
    ReadinessReport,
    not_run,
)
from shoal.policy.readiness.rule_findings import kinds_of_rules, with_rules

SMOKE_TESTS: Final = {
    "vectoradd": "A pod with a GPU runs vectorAdd",
    "distributed-job": "The pods of an indexed Job run vectorAdd, each with a GPU",
    "all-reduce": "NCCL's all-reduce passes and reaches its bandwidth",
    "pytorch-single": "A PyTorchJob with one node completes",
    "pytorch-multi": "A PyTorchJob with several nodes completes",
    "inference-load": "A model server keeps its P99 under load",
    "spot-interruption": "A job comes back after a node is taken away",
    "scale-from-zero": "A Deployment grows from 0 to N in less than 5 minutes",
}
_OPTIONS: Final = {
    "all-reduce": "--nccl-image IMAGE",
    "pytorch-single": "--pytorch-image IMAGE",
    "pytorch-multi": "--pytorch-image IMAGE",
    "inference-load": "--inference-service NAMESPACE/NAME:PORT/PATH",
}


def _smoke(name: str) -> Callable[[ReadinessFacts], Outcome]:
    def judge(facts: ReadinessFacts) -> Outcome:
        done = facts.smoke.get(name)
        if done is not None:
            return done
        option = f" {_OPTIONS[name]}" if name in _OPTIONS else ""
        return not_run("smoke tests run on request", f"shoal check --smoke {name}{option}")

    return judge


SECTIONS: Final[tuple[tuple[str, tuple[ReadinessCheck, ...]], ...]] = (
    ("Infrastructure", infrastructure.CHECKS),
    ("Scheduling", queueing.CHECKS),
    ("Autoscaling", scaling.CHECKS),
    ("Monitoring", monitoring.CHECKS),
    ("Security", security.CHECKS),
    ("Storage", data_and_pipelines.STORAGE),
    ("MLOps", data_and_pipelines.PIPELINES),
    ("Cost", spending.CHECKS),
    ("Testing", tuple(ReadinessCheck(name, title, _smoke(name)) for name, title in SMOKE_TESTS.items())),
)
RUNNABLE: Final = tuple(SMOKE_TESTS)


def check_ids() -> list[str]:
    return [check.id for _, checks in SECTIONS for check in checks]


def needed_kinds() -> list[GroupKind]:
    """The kinds that the checks and their rules read."""
    every = [check for _, checks in SECTIONS for check in checks]
    return list(dict.fromkeys(kind for check in every for kind in (*check.needs, *kinds_of_rules(check))))


def readiness(facts: ReadinessFacts) -> ReadinessReport:
    items = tuple(_item(section, check, facts) for section, checks in SECTIONS for check in checks)
    return ReadinessReport(items, {state: sum(item.state == state for item in items) for state in STATES})


def _item(section: str, check: ReadinessCheck, facts: ReadinessFacts) -> ReadinessItem:
    missing = facts.cluster.not_run("", check.id, *check.needs)
    found = with_rules(check, check.judge(facts), facts) if missing is None else not_run(missing.why)
    return ReadinessItem(
        check.id, section, check.title, found.state, found.evidence, found.fix, found.commands, found.corrections
    )
