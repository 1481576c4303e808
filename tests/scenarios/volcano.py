"""A Volcano case as what its discipline reads: the scheduler's configuration, queues and jobs. It contains no rules."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.wire import dec_hook
from shoal.engine.queues.disciplines.volcano.configuration import (
    DEFAULT,
    SWITCHES,
    VolcanoConfiguration,
    read_configuration,
)
from shoal.engine.queues.disciplines.volcano.discipline import Volcano
from shoal.engine.queues.disciplines.volcano.jobs import JobFacts
from shoal.engine.queues.disciplines.volcano.objects import Queue as QueueObject
from shoal.engine.queues.disciplines.volcano.queue_forest import QueueForest, engine_amounts, scheduler_queue
from shoal.engine.queues.disciplines.volcano.session import VolcanoFacts
from shoal.units.errors import Where

from .case import Case, Job, Queue

_SIMULATED = "enableTopologyAwarePreemption"


def configuration_of(case: Case) -> VolcanoConfiguration:
    """The configuration as a file would state it: every switch of every plugin."""
    if not case.config.plugins:
        return msgspec.structs.replace(DEFAULT, actions=tuple(case.config.actions))
    plugins = [_plugin(name, said or {}) for name, said in case.config.plugins.items()]
    arguments = {_SIMULATED: case.config.simulated_preemption}
    document = {
        "actions": ", ".join(case.config.actions),
        "tiers": [{"plugins": plugins}],
        "configurations": [{"name": "preempt", "arguments": arguments}],
    }
    return read_configuration(document, Where(obj=case.id))


def _plugin(name: str, said: dict[str, Any]) -> dict[str, Any]:
    on = set(said.get("hooks") or ())
    return {
        "name": name,
        "arguments": said.get("arguments") or {},
        **{switch: hook in on for hook, switch in SWITCHES.items()},
    }


def discipline_of(case: Case) -> Volcano:
    forest = QueueForest(scheduler_queue(_queue(queue, place)) for place, queue in enumerate(case.queues))
    admitted: dict[str, None] = {}
    discipline: list[Volcano] = []

    def facts() -> VolcanoFacts:
        session = discipline[0].session
        admitted.update(session.enqueued if session is not None else {})
        jobs = [_job(job, admitted) for job in case.jobs]
        return VolcanoFacts(forest, {job.name: job for job in jobs})

    discipline.append(Volcano(facts, configuration_of(case)))
    return discipline[0]


def _job(job: Job, admitted: dict[str, None]) -> JobFacts:
    name = name_of(job)
    least = engine_amounts(_whole(job.min_resources)) if job.min_resources else None
    return JobFacts(
        name, job.queue, job.priority, float(job.created_order), least, is_enqueued=job.admitted or name in admitted
    )


def name_of(job: Job) -> str:
    return f"{job.namespace}/{job.name}"


def _queue(queue: Queue, place: int) -> QueueObject:
    document = {
        "metadata": {"name": queue.name, "creationTimestamp": f"2026-01-01T00:{place // 60:02}:{place % 60:02}Z"},
        "spec": {
            "weight": queue.weight,
            "priority": int(queue.priority or 0),
            "parent": queue.parent,
            "deserved": _quantities(queue.quota),
            "capability": _quantities(queue.limit),
            "guarantee": {"resource": _quantities(queue.guarantee)},
            "reclaimable": queue.reclaimable,
        },
        "status": {"state": queue.state},
    }
    return msgspec.convert(document, QueueObject, dec_hook=dec_hook)


def _quantities(amounts: Any) -> dict[str, str]:
    """An amount of -1 is no limit, and null is none."""
    known = {name: amount for name, amount in (amounts or {}).items() if amount is not None and amount >= 0}
    return {_named(name): _text(name, amount) for name, amount in known.items()}


def _text(name: str, amount: float) -> str:
    return f"{round(amount * 1000)}m" if name == "cpu" else str(int(amount))


def _whole(amounts: dict[str, float]) -> dict[str, int]:
    return {_named(name): round(amount * 1000) if name == "cpu" else int(amount) for name, amount in amounts.items()}


def _named(name: str) -> str:
    return "nvidia.com/gpu" if name in ("gpu", "gpus") else name
