"""The check of the storage for the history: a volume can be provided, or the one that is there can be used."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.install.objects.deployments import HISTORY
from shoal.install.preflight.facts import ClaimFacts, ClusterFacts, Finding
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues
from shoal.units.quantity import Quantity

_CHECK = "storage"
_OFF = "leave the history out with --set history.enabled=false"
_DEFAULT = "storageclass.kubernetes.io/is-default-class=true"
_MOST_NAMED = 5


def storage_findings(facts: ClusterFacts, values: ChartValues, release: Release) -> Iterator[Finding]:
    if not values.get("history.enabled") or values.get("observe.enabled") or values.get("history.existingClaim"):
        return
    if facts.history_claim is not None:
        yield from _kept_claim(facts.history_claim, values, release)
        return
    classes, wanted = facts.storage_classes, values.get("history.storageClass")
    if classes is None:
        what = "whether a StorageClass can provide the volume of the history is not checked: the user may not list them"
        yield Finding("warning", _CHECK, what, "see kubectl get storageclass")
        return
    names = sorted(one.name for one in classes)
    listed = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    if not names:
        named = f" {wanted}" if wanted else ""
        what = f"the history needs a volume, and the cluster has no StorageClass{named}"
        yield Finding("error", _CHECK, what, f"install a provisioner of volumes with a StorageClass, or {_OFF}")
    elif wanted and wanted not in names:
        what = f"the StorageClass {wanted}, which history.storageClass names, does not exist; there are: {listed}"
        yield Finding("error", _CHECK, what, f"name one with --set history.storageClass={names[0]}, or {_OFF}")
    elif not wanted and not any(one.is_default for one in classes):
        yield Finding(
            "error",
            _CHECK,
            f"the history needs a volume, and no StorageClass is the default one; there are: {listed}",
            f"name one with --set history.storageClass={names[0]}; or make it the default one with: kubectl annotate "
            f"storageclass {names[0]} {_DEFAULT}; or {_OFF}",
        )


def _kept_claim(claim: ClaimFacts, values: ChartValues, release: Release) -> Iterator[Finding]:
    """The API server refuses other changes of a claim than a larger size."""
    what = f"the PersistentVolumeClaim {HISTORY}, which has the history,"
    remove = f"remove it with its data: kubectl delete pvc -n {release.namespace} {HISTORY}"
    wanted, mode = values.get("history.storageClass"), values.get("history.accessMode")
    if wanted and wanted != claim.storage_class:
        told = f"is of the StorageClass {claim.storage_class}, which cannot be changed to {wanted}"
        yield Finding("error", _CHECK, f"{what} {told}", f"set history.storageClass={claim.storage_class}; or {remove}")
    if (mode,) != claim.modes:
        modes = ", ".join(claim.modes)
        told = f"has the access mode {modes}, which cannot be changed to {mode}"
        yield Finding("error", _CHECK, f"{what} {told}", f"set history.accessMode={modes}; or {remove}")
    if Quantity.parse(values.get("history.size")) < Quantity.parse(claim.size):
        told = f"requests {claim.size}, and a volume does not become smaller"
        yield Finding("error", _CHECK, f"{what} {told}", f"set history.size={claim.size}; or {remove}")
