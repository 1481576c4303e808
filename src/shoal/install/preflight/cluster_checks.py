"""Checks of the cluster as a whole: its version, the namespace, earlier releases, definitions, webhooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shoal.install.inventory import REMOVING
from shoal.install.manifest import ENFORCE, Address
from shoal.install.objects.certificates import has_issued_certificate
from shoal.install.objects.deployments import image_of
from shoal.install.preflight.facts import ClusterFacts, DefinitionFacts, Finding
from shoal.install.preflight.supported_versions import is_older, unsupported
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues
from shoal.units.semver import compare_versions, is_version, parse_version

Obj = dict[str, Any]
_VERSION = "app.kubernetes.io/version"
_OURS = frozenset({"pods", "deployments", "replicasets", "services", "configmaps", "*"})
"""Resources that an installation creates; a webhook for them must answer."""
_FEW = 5


def version_findings(facts: ClusterFacts) -> Iterator[Finding]:
    complaint = unsupported(facts.version)
    if complaint:
        fix = "upgrade Kubernetes first" if is_older(facts.version) else ""
        yield Finding("error" if is_older(facts.version) else "warning", "Kubernetes version", complaint, fix)


def namespace_findings(facts: ClusterFacts, values: ChartValues, release: Release) -> Iterator[Finding]:
    name = release.namespace
    if facts.is_namespace_terminating:
        yield Finding(
            "error",
            "namespace",
            f"the namespace {name} is terminating",
            f"wait until it is gone; what keeps it is shown by: kubectl get namespace {name} -o yaml",
        )
        return
    labels = facts.namespace_labels or {}
    level = labels.get(ENFORCE, "")
    # The level of a namespace that the release created is changed with the release.
    if values.get("operator.enabled") and not release.owns(labels) and level in ("baseline", "restricted"):
        yield Finding(
            "error",
            "namespace",
            f"the namespace {name} has the Pod Security level {level}, and the driver and the toolkit need privileged "
            "pods",
            f"allow them with: kubectl label --overwrite ns {name} {ENFORCE}=privileged",
        )


def release_findings(facts: ClusterFacts, release: Release) -> Iterator[Finding]:
    for one in facts.releases:
        if (one.name, one.namespace) != (release.name, release.namespace):
            yield Finding(
                "error",
                "release",
                f"Shoal is installed already, as release {one.name} in the namespace {one.namespace}",
                f"change it with: shoal upgrade {one.name} -n {one.namespace}; or remove it with: shoal uninstall "
                f"{one.name} -n {one.namespace}",
            )
        elif one.state == REMOVING:
            yield Finding(
                "error",
                "release",
                f"the removal of release {one.name} was interrupted",
                f"complete it with: shoal uninstall {one.name} -n {one.namespace}",
            )
        elif _is_newer(one.version, release.version):
            yield Finding(
                "error",
                "release",
                f"release {one.name} was installed by Shoal {one.version}, which is newer than {release.version}",
                "use that version of shoal; shoal upgrade --rollback returns to the former revision",
            )


def definition_findings(facts: ClusterFacts, desired: Sequence[Obj], release: Release) -> Iterator[Finding]:
    there = {one.name: one for one in facts.definitions}
    for definition in desired:
        present = there.get(definition["metadata"]["name"])
        if present is not None:
            yield from _definition(present, definition, release)


def _definition(present: DefinitionFacts, desired: Obj, release: Release) -> Iterator[Finding]:
    what = f"the CustomResourceDefinition {present.name}"
    if present.is_terminating:
        fix = f"wait until it is gone; its objects are shown by: kubectl get {present.name} -A"
        yield Finding("error", "definitions", f"{what} is terminating", fix)
        return
    versions = [one["name"] for one in desired["spec"]["versions"]]
    if release.owns(present.labels):
        newer = present.labels.get(_VERSION, "").replace("_", "+")
        unknown = [one for one in present.stored if one not in versions]
        if unknown or _is_newer(newer, release.version):
            told = f"has objects in the version {unknown[0]}" if unknown else f"was written by Shoal {newer}"
            yield Finding(
                "error", "definitions", f"{what} {told}, which this Shoal does not know", "use a newer version of shoal"
            )
        return
    needed = next(one["name"] for one in desired["spec"]["versions"] if one["storage"])
    if needed not in present.served:
        yield Finding(
            "warning",
            "definitions",
            f"{what} exists and does not serve the version {needed}; it is not changed",
            "update the project that it belongs to",
        )


def hook_findings(facts: ClusterFacts) -> Iterator[Finding]:
    for hook in facts.hooks:
        if hook.resources & _OURS and not hook.has_endpoints:
            yield Finding(
                "error",
                "webhooks",
                f"the webhook {hook.name} of the {hook.kind} {hook.configuration} refuses requests, because its "
                f"Service {hook.service} has no endpoint",
                f"start its pods, or remove it with: kubectl delete {hook.kind.lower()} {hook.configuration}",
            )


def certificate_findings(facts: ClusterFacts, values: ChartValues) -> Iterator[Finding]:
    """The definitions of cert-manager, where it is to issue the certificate of the webhook."""
    if not has_issued_certificate(values) or "definitions" in facts.unread:
        return
    there = {one.name: one for one in facts.definitions}
    for name in ("certificates.cert-manager.io", "issuers.cert-manager.io"):
        found = there.get(name)
        if found is None or "v1" not in found.served:
            told = "does not exist" if found is None else "does not serve the version v1"
            yield Finding(
                "error",
                "certificates",
                f"the CustomResourceDefinition {name} {told}, and webhook.certificates is cert-manager",
                "install cert-manager first, or set webhook.certificates=shoal",
            )
            return


def foreign_findings(foreign: Sequence[Address], release: Release) -> Iterator[Finding]:
    if foreign:
        shown = ", ".join(map(str, foreign[:_FEW]))
        more = f" and {len(foreign) - _FEW} others" if len(foreign) > _FEW else ""
        yield Finding(
            "error",
            "existing objects",
            f"{shown}{more} exist and do not belong to release {release.name}",
            "remove them, or let the release take them over with --take-ownership; it then removes them when it is "
            "uninstalled",
        )


def image_findings(values: ChartValues, release: Release) -> Iterator[Finding]:
    if "/" not in values.get("image.repository"):
        yield Finding(
            "note",
            "image",
            f"the image {image_of(values, release.version)} names no registry, so that the nodes must have it",
            "push the image to a registry and set image.repository",
        )


def _is_newer(version: str, other: str) -> bool:
    if not is_version(version, is_loose=True) or not is_version(other, is_loose=True):
        return False
    return compare_versions(parse_version(version, is_loose=True), parse_version(other, is_loose=True)) > 0


def priority_findings(facts: ClusterFacts, objects: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Priority classes that pods of the installation name and that do not exist."""
    if not facts.priority_classes:
        return
    for obj in objects:
        if obj["kind"] == "Deployment":
            name = obj["spec"]["template"]["spec"].get("priorityClassName", "")
            if name and name not in facts.priority_classes:
                yield Finding(
                    "error",
                    "priority class",
                    f"the PriorityClass {name} of the Deployment {obj['metadata']['name']} does not exist",
                    "create it, or set priorityClassName to one that exists: kubectl get priorityclasses",
                )
