"""The checks of the preflight, in the order in which their findings are shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.install.manifest import Address
from shoal.install.preflight.cluster_checks import (
    certificate_findings,
    definition_findings,
    foreign_findings,
    hook_findings,
    image_findings,
    namespace_findings,
    priority_findings,
    release_findings,
    version_findings,
)
from shoal.install.preflight.facts import ClusterFacts, Finding, Level
from shoal.install.preflight.node_checks import node_findings
from shoal.install.preflight.other_software import other_operator, software_findings
from shoal.install.preflight.rights import right_findings
from shoal.install.preflight.storage_checks import storage_findings
from shoal.install.release import Release
from shoal.install.values.known import copied
from shoal.install.values.reading import ChartValues

Obj = dict[str, Any]
_RANK: dict[Level, int] = {"error": 0, "warning": 1, "note": 2}


def adapted(values: ChartValues, facts: ClusterFacts) -> ChartValues:
    """The values for this cluster: without the GPU stack beside NVIDIA's GPU operator, and beside an observer."""
    is_observing = values.get("observe.enabled")
    if other_operator(facts) is None and not is_observing:
        return values
    effective = copied(values.effective)
    effective["operator"]["enabled"] = False
    # A pod with a GPU would be placed.
    effective["smokeTest"]["enabled"] &= not is_observing
    return msgspec.structs.replace(values, effective=effective)


def findings(
    facts: ClusterFacts, values: ChartValues, release: Release, objects: Sequence[Obj], foreign: Sequence[Address] = ()
) -> list[Finding]:
    """`values`: adapted to the cluster. `objects`: the manifest. `foreign`: those that belong to others."""
    found = [
        *version_findings(facts),
        *right_findings(facts.denied, facts.user),
        *namespace_findings(facts, values, release),
        *release_findings(facts, release),
        *definition_findings(facts, [one for one in objects if one["kind"] == "CustomResourceDefinition"], release),
        *hook_findings(facts),
        *priority_findings(facts, objects),
        *([] if values.get("observe.enabled") else certificate_findings(facts, values)),
        *storage_findings(facts, values, release),
        *foreign_findings(foreign, release),
        *software_findings(facts, values, release),
        *image_findings(values, release),
        *node_findings(facts, values),
    ]
    if facts.unread:
        what = f"not checked, because the user may not read them: {', '.join(facts.unread)}"
        found.append(Finding("warning", "permissions", what))
    return sorted(found, key=lambda one: _RANK[one.level])
