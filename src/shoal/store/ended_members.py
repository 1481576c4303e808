"""Computes what a gang still needs when some of its pods have succeeded, which count permanently."""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from shoal.engine.groups import GroupFacts
from shoal.engine.pod_identity import PodIdentity


def less_those_that_ended(facts: GroupFacts, ended: list[PodIdentity]) -> GroupFacts:
    """The number of remaining pods that the gang needs."""
    if not ended:
        return facts
    parts, roles = Counter(who.part for who in ended), Counter(who.role for who in ended)
    return structs.replace(
        facts,
        minimum=max(facts.minimum - len(ended), 0),
        succeeded=len(ended),
        parts=tuple(structs.replace(part, minimum=max(part.minimum - parts[part.name], 0)) for part in facts.parts),
        roles=tuple((role, least - roles[role]) for role, least in facts.roles if least > roles[role]),
    )
