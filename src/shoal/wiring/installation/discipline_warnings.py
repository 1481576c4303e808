"""Names what has no effect in the configuration of another project's scheduler, by the readers of its discipline.

The plan of an adoption thus says the same as the discipline itself says once it decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from shoal.api.yaml_text import read_yaml
from shoal.engine.queues.disciplines.kai.shard_objects import SchedulingShard
from shoal.engine.queues.disciplines.kai.shards import shards_of
from shoal.engine.queues.disciplines.volcano.configuration import read_configuration
from shoal.install.adoption.facts import AdoptionFacts
from shoal.install.adoption.ignored_fields import IgnoredField
from shoal.install.adoption.projects import KAI, VOLCANO, AdoptedProject
from shoal.units.errors import UserError, Where


def discipline_warnings(project: AdoptedProject, facts: AdoptionFacts) -> tuple[IgnoredField, ...]:
    if project.name == VOLCANO.name:
        name = f"ConfigMap {project.config_map}"
        return tuple(chain.from_iterable(_of_volcano(text, name) for text in facts.settings.values()))
    if project.name == KAI.name:
        return tuple(_of_kai(facts))
    return ()


def _of_volcano(text: str, name: str) -> Iterator[IgnoredField]:
    try:
        for _, value in read_yaml(text):
            yield from _split(name, read_configuration(value, Where()).warnings)
    except UserError as error:
        yield IgnoredField(name, error.where.path, f"it cannot be read: {error.what}")


def _of_kai(facts: AdoptionFacts) -> Iterator[IgnoredField]:
    shards = []
    for kind, listed in facts.objects.items():
        for obj in listed if kind.name == "SchedulingShard" else ():
            try:
                shards.append(msgspec.convert(obj, SchedulingShard))
            except msgspec.ValidationError as error:
                yield IgnoredField(f"SchedulingShard {obj['metadata']['name']}", "", f"it cannot be read: {error}")
    for warning in shards_of(shards).warnings:
        name, _, rest = warning.partition(": ")
        yield from _split(name, (rest,))


def _split(name: str, warnings: Iterable[str]) -> Iterator[IgnoredField]:
    for warning in warnings:
        path, _, effect = warning.partition(": ")
        yield IgnoredField(name, path, effect)
