"""Prepares an installation without a write: the facts, the objects and what is done with them, findings, the record."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.install.inventory import (
    DEPLOYED,
    INSTALLING,
    ROLLING_BACK,
    UPGRADING,
    InstallPlan,
    ReleaseRecord,
    Revision,
    plan,
)
from shoal.install.manifest import address_of, manifest
from shoal.install.preflight.checks import adapted, findings
from shoal.install.preflight.facts import ClusterFacts, Finding
from shoal.install.preflight.node_checks import labelled_nodes
from shoal.install.preflight.rights import needed_rights
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues
from shoal.wiring.installation.cluster_writer import ClusterWriter
from shoal.wiring.installation.definitions import project_definitions
from shoal.wiring.installation.facts_reader import FactsReader
from shoal.wiring.installation.release_store import find_record
from shoal.wiring.installation.written_objects import written_objects

Obj = dict[str, Any]
_DEFINITION = "CustomResourceDefinition"
_OPERATOR_GROUP = "nvidia.com"


class InstallRequest(msgspec.Struct, frozen=True):
    release: Release
    values: ChartValues
    server_version: str = ""
    takes_ownership: bool = False


class Preparation(msgspec.Struct, frozen=True):
    """What an installation would do: shown by `--dry-run` and `--diff`, carried out by `Installer`."""

    request: InstallRequest
    facts: ClusterFacts
    values: ChartValues
    """Adapted to the cluster."""
    plan: InstallPlan
    findings: tuple[Finding, ...]
    present: ReleaseRecord | None
    """The record of the release before."""
    has_other_process: bool = False

    @property
    def errors(self) -> list[Finding]:
        return [one for one in self.findings if one.level == "error"]

    @property
    def record(self) -> ReleaseRecord:
        """As it is written before the first object: with all objects that will be there, and those of before."""
        request, present = self.request, self.present
        objects = tuple(obj for obj in self.plan.applied if obj["kind"] != _DEFINITION)
        inventory = [address_of(obj) for obj in self.plan.applied]
        created = any(one.kind == "Namespace" for one in inventory)
        revision = Revision(1, request.release.version, request.values.given, objects)
        if present is None:
            return ReleaseRecord(
                request.release.name,
                request.release.namespace,
                INSTALLING,
                created,
                self.has_other_process,
                bool(labelled_nodes(self.facts.nodes)),
                tuple(inventory),
                revision,
            )
        former, number, state = present.former, present.current.number, INSTALLING
        is_same = _content(present.current) == _content(revision)
        if present.state in (DEPLOYED, ROLLING_BACK) and not is_same:
            former, number = present.current, number + 1
        if former is not None:
            state = UPGRADING
        is_unchanged = present.state == DEPLOYED and is_same
        return ReleaseRecord(
            present.name,
            present.namespace,
            # An installation that changes nothing writes nothing, so that clients may repeat it all the time.
            DEPLOYED if is_unchanged else state,
            present.created_namespace or created,
            present.has_other_process,
            present.had_gpu_labels,
            tuple(dict.fromkeys((*inventory, *present.inventory))),
            msgspec.structs.replace(revision, number=number),
            former,
            present.failed if is_unchanged else None,
        )


async def prepare(writer: ClusterWriter, request: InstallRequest) -> Preparation:
    """Raises UserError for wrong values."""
    release = request.release
    present = await find_record(writer, release.name, release.namespace)
    definitions = project_definitions(request.values.get("crds.projects"))
    is_complete = present is not None and present.state != INSTALLING
    if is_complete and not request.values.get("operator.upgradeCRD"):
        definitions = [one for one in definitions if one["spec"]["group"] != _OPERATOR_GROUP]
    usual = manifest(release, request.values, definitions)
    facts = await FactsReader(writer).read(release.namespace, needed_rights(usual), request.server_version)
    values = adapted(request.values, facts)
    objects = manifest(release, values, definitions, max(len(facts.nodes), 1))
    recorded = present.inventory if present is not None else ()
    labels = await writer.labels(dict.fromkeys((*map(address_of, objects), *recorded)))
    planned = plan(release, objects, labels, recorded, takes_ownership=request.takes_ownership)
    found = findings(facts, values, release, objects, planned.foreign)
    has_other = present is None and bool(await written_objects(writer))
    return Preparation(request, facts, values, planned, tuple(found), present, has_other)


def _content(revision: Revision) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(revision, number=0))
