"""Lists the plugins of Volcano that decide in a session; adding one takes a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.engine.queues.disciplines.volcano.configuration import PluginOption
from shoal.engine.queues.disciplines.volcano.plugins.capacity import Capacity
from shoal.engine.queues.disciplines.volcano.plugins.conformance import Conformance
from shoal.engine.queues.disciplines.volcano.plugins.drf import Drf
from shoal.engine.queues.disciplines.volcano.plugins.gang import Gang
from shoal.engine.queues.disciplines.volcano.plugins.overcommit import Overcommit
from shoal.engine.queues.disciplines.volcano.plugins.pdb import Pdb
from shoal.engine.queues.disciplines.volcano.plugins.plugin import Plugin
from shoal.engine.queues.disciplines.volcano.plugins.priority import Priority
from shoal.engine.queues.disciplines.volcano.plugins.proportion import Proportion
from shoal.engine.queues.disciplines.volcano.plugins.session_view import SessionView
from shoal.engine.queues.disciplines.volcano.plugins.sla import Sla
from shoal.engine.queues.disciplines.volcano.plugins.tdm import Tdm

PLUGINS: Mapping[str, type[Plugin]] = {
    "gang": Gang,
    "priority": Priority,
    "conformance": Conformance,
    "drf": Drf,
    "proportion": Proportion,
    "capacity": Capacity,
    "overcommit": Overcommit,
    "sla": Sla,
    "tdm": Tdm,
    "pdb": Pdb,
}
"""The other implemented plugins are filters and scores of the engine: see `node_scores.py`."""


def made_plugins(session: SessionView, tiers: Sequence[Sequence[PluginOption]]) -> list[list[Plugin]]:
    """The plugins of every tier. Of `capacity` and `proportion` one alone shares quota: `capacity` where queues declare
    deserved amounts or guarantees, or have parents, else `proportion`; Volcano cannot run both."""
    names = {option.name for tier in tiers for option in tier}
    left_out = ""
    if {"capacity", "proportion"} <= names:
        forest = session.forest
        left_out = "proportion" if forest.declares_quota or forest.is_tree else "capacity"
    return [[_made(option, session) for option in tier if option.name in PLUGINS.keys() - {left_out}] for tier in tiers]


def _made(option: PluginOption, session: SessionView) -> Plugin:
    return PLUGINS[option.name](session, option)
