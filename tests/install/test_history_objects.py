"""The process that records the history of devices: one writer, a volume that upgrades keep, rights to read alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.install.inventory import plan
from shoal.install.manifest import address_of, manifest
from shoal.install.preflight.checks import findings
from shoal.install.preflight.facts import ClaimFacts, ClusterFacts, Finding, FoundNode, StorageClassFacts
from shoal.install.preflight.rights import needed_rights
from shoal.install.release import Release
from shoal.install.values.reading import ChartValues, ValuesText, read_values
from shoal.units.errors import UserError

Obj = dict[str, Any]
RELEASE = Release("prod", "gpu-operator", "0.2.0")
_ON = "history.enabled=true,image.repository=r.example/shoal"


def _values(*sets: str) -> ChartValues:
    return read_values([ValuesText("--set", one) for one in (_ON, *sets)])


def _parts(*sets: str) -> dict[str, Obj]:
    """The objects of the recording process by kind; the roles are those of the whole cluster."""
    objects = manifest(RELEASE, _values(*sets))
    return {
        one["kind"]: one for one in objects if one["metadata"]["labels"]["app.kubernetes.io/component"] == "history"
    }


def test_nothing_of_it_is_installed_unless_it_is_enabled() -> None:
    kinds = {one["kind"] for one in manifest(RELEASE, read_values([]))}
    assert "PersistentVolumeClaim" not in kinds
    assert "PersistentVolumeClaim" in {one["kind"] for one in manifest(RELEASE, _values())}
    observing = manifest(RELEASE, _values("observe.enabled=true"))
    assert "PersistentVolumeClaim" not in {one["kind"] for one in observing}


def test_one_pod_records_and_ends_before_its_successor_starts() -> None:
    spec = _parts("replicas=3")["Deployment"]["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {"type": "Recreate"}
    container = spec["template"]["spec"]["containers"][0]
    assert container["args"][:5] == ["run", "--controllers", "history", "--history", "/var/lib/shoal/history"]
    others = [one for one in manifest(RELEASE, _values()) if one["metadata"]["name"] in ("shoal", "shoal-operator")]
    assert all("--history" not in str(one) for one in others)


def test_the_volume_of_the_claim_can_be_written_by_the_user_of_the_program() -> None:
    parts = _parts()
    pod = parts["Deployment"]["spec"]["template"]["spec"]
    (volume,) = [one for one in pod["volumes"] if "persistentVolumeClaim" in one]
    assert volume["persistentVolumeClaim"]["claimName"] == parts["PersistentVolumeClaim"]["metadata"]["name"]
    mounts = {one["name"]: one["mountPath"] for one in pod["containers"][0]["volumeMounts"]}
    assert mounts[volume["name"]] == "/var/lib/shoal"
    assert pod["securityContext"]["fsGroup"] == pod["securityContext"]["runAsGroup"]
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]


def test_the_claim_has_the_size_class_and_mode_of_the_values() -> None:
    usual = _parts()["PersistentVolumeClaim"]["spec"]
    assert usual == {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}}
    chosen = _parts("history.size=20Gi,history.storageClass=fast,history.accessMode=ReadWriteOncePod")
    assert chosen["PersistentVolumeClaim"]["spec"] == {
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "20Gi"}},
        "storageClassName": "fast",
    }


@pytest.mark.parametrize("size", ["big", "0", "-1Gi"])
def test_a_wrong_size_is_named_before_anything_is_applied(size: str) -> None:
    with pytest.raises(UserError, match=r"^history\.size: .* is not a size; write it as 5Gi$"):
        _parts(f"history.size={size}")


def test_its_account_may_only_read_and_write_events_its_own_lease_and_the_report_of_budgets() -> None:
    roles = [
        one
        for one in manifest(RELEASE, _values())
        if one["kind"] in ("Role", "ClusterRole") and one["metadata"]["name"].startswith("shoal-history")
    ]
    assert len(roles) == 3
    writing = {
        (tuple(rule["resources"]), tuple(rule.get("resourceNames", ())))
        for role in roles
        for rule in role["rules"]
        if {*rule["verbs"]} - {"get", "list", "watch"}
    }
    assert writing == {
        (("events",), ()),
        (("leases",), ()),
        (("leases",), ("shoal-history",)),
        (("configmaps",), ("shoal-budgets",)),
    }


def test_a_claim_of_the_user_is_used_and_none_is_created() -> None:
    parts = _parts("history.existingClaim=mine")
    assert "PersistentVolumeClaim" not in parts
    volumes = parts["Deployment"]["spec"]["template"]["spec"]["volumes"]
    assert {"name": "history", "persistentVolumeClaim": {"claimName": "mine"}} in volumes
    assert _found("history.existingClaim=mine", storage_classes=()) == []


def test_prices_retention_and_alerts_are_options_of_the_process() -> None:
    sets = "history.pricesConfigMap=prices,history.retention=raw=1d\\,size=1G"
    parts = _parts(sets, "alerts.enabled=true", "alerts.to={events,webhook=https://h/x}")
    pod = parts["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["args"][7:] == [
        *("--history-retention", "raw=1d,size=1G"),
        *("--prices", "/etc/shoal-prices/prices.yaml"),
        *("--alerts-to", "events", "--alerts-to", "webhook=https://h/x"),
        *("--alerts-scrape", f"http://shoal-metrics.{RELEASE.namespace}.svc:8080/metrics"),
    ]
    assert {"name": "prices", "configMap": {"name": "prices"}} in pod["volumes"]
    assert {"name": "prices", "mountPath": "/etc/shoal-prices", "readOnly": True} in container["volumeMounts"]


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        ("history.enabled=false,alerts.enabled=true", "alerts.enabled: alerts are evaluated beside the history"),
        ("alerts.enabled=true,alerts.to={pager}", "alerts.to: .*pager.* is no target of alerts"),
    ],
)
def test_alerts_that_cannot_be_evaluated_or_sent_are_refused(sets: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        manifest(RELEASE, _values(sets))


def test_an_upgrade_without_the_history_keeps_the_claim() -> None:
    before = manifest(RELEASE, _values())
    after = manifest(RELEASE, _values("history.enabled=false"))
    present = {address_of(one): one["metadata"]["labels"] for one in before}
    removed = {one.kind: one.name for one in plan(RELEASE, after, present, present).removed}
    assert removed["Deployment"] == "shoal-history"
    assert "PersistentVolumeClaim" not in removed


def test_the_rights_on_claims_are_needed_only_with_a_history() -> None:
    with_history = {one.resource for one in needed_rights(manifest(RELEASE, _values()))}
    without = {one.resource for one in needed_rights(manifest(RELEASE, read_values([])))}
    assert "persistentvolumeclaims" in with_history - without


FAST, SLOW = StorageClassFacts("fast"), StorageClassFacts("slow", is_default=True)
_OFF = "leave the history out with --set history.enabled=false"
_REMOVE = "remove it with its data: kubectl delete pvc -n gpu-operator shoal-history"
_NODE = FoundNode("a", "containerd://2.1.4", "Ubuntu 24.04", {"nvidia.com/gpu.present": "true"}, 8)
STORAGE: dict[str, tuple[tuple[StorageClassFacts, ...] | None, str, str]] = {
    "there is a default class": ((FAST, SLOW), "", ""),
    "the named class exists": ((FAST,), "history.storageClass=fast", ""),
    "there is no class": (
        (),
        "",
        (
            "the history needs a volume, and the cluster has no StorageClass; install a provisioner of volumes with "
            f"a StorageClass, or {_OFF}"
        ),
    ),
    "the named class is missing": (
        (FAST, SLOW),
        "history.storageClass=gold",
        (
            "the StorageClass gold, which history.storageClass names, does not exist; there are: fast, slow; name one "
            f"with --set history.storageClass=fast, or {_OFF}"
        ),
    ),
    "no class is the default one": (
        (FAST,),
        "",
        (
            "the history needs a volume, and no StorageClass is the default one; there are: fast; name one with "
            "--set history.storageClass=fast; or make it the default one with: kubectl annotate storageclass fast "
            f"storageclass.kubernetes.io/is-default-class=true; or {_OFF}"
        ),
    ),
    "classes may not be read": (None, "", "the user may not list them; see kubectl get storageclass"),
    "it is not enabled": ((), "history.enabled=false", ""),
    "only the observer is installed": ((), "observe.enabled=true", ""),
}


def _found(*sets: str, **facts: Any) -> list[Finding]:
    values = _values("smokeTest.enabled=false,operator.enabled=false", *sets)
    cluster = msgspec.structs.replace(ClusterFacts(version="v1.36.2", nodes=(_NODE,)), **facts)
    found = findings(cluster, values, RELEASE, manifest(RELEASE, values))
    return [one for one in found if one.check == "storage"]


@pytest.mark.parametrize("case", STORAGE)
def test_the_storage_is_checked_before_the_installation(case: str) -> None:
    classes, sets, words = STORAGE[case]
    found = _found(*([sets] if sets else []), storage_classes=classes)
    assert [str(one).endswith(words) for one in found] == [True] * bool(words)
    assert [one.level for one in found] == (["warning" if classes is None else "error"] if words else [])


CLAIM = ClaimFacts("fast", "5Gi", ("ReadWriteOnce",))
KEPT = {
    "history.size=5Gi": "",
    "history.size=6Gi,history.storageClass=fast": "",
    "history.size=4Gi": f"requests 5Gi, and a volume does not become smaller; set history.size=5Gi; or {_REMOVE}",
    "history.storageClass=gold": (
        f"is of the StorageClass fast, which cannot be changed to gold; set history.storageClass=fast; or {_REMOVE}"
    ),
    "history.accessMode=ReadWriteMany": (
        "has the access mode ReadWriteOnce, which cannot be changed to ReadWriteMany; set "
        f"history.accessMode=ReadWriteOnce; or {_REMOVE}"
    ),
}


@pytest.mark.parametrize("sets", KEPT)
def test_a_claim_that_is_there_is_used_without_a_class_and_refused_changes_are_named(sets: str) -> None:
    found = _found(sets, storage_classes=(), history_claim=CLAIM)
    words = f"the PersistentVolumeClaim shoal-history, which has the history, {KEPT[sets]}" if KEPT[sets] else ""
    assert [str(one) for one in found] == [words] * bool(words)


def test_the_scheduler_does_not_record_beside_it() -> None:
    what = r"^controllers: history is a Deployment of its own; set history\.enabled to true, and leave it out here$"
    with pytest.raises(UserError, match=what):
        manifest(RELEASE, _values("controllers={scheduler,history}"))


def test_the_web_dashboard_is_served_by_the_same_process_with_rights_to_read_alone() -> None:
    sets = "web.enabled=true,web.tlsSecret=web,web.trustedProxies={10.0.0.0/8}"
    pod = _parts(sets)["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][7:] == [
        *("--web-address", "0.0.0.0:8090"),
        *("--web-tls-cert-file", "/etc/shoal-web/tls.crt", "--web-tls-key-file", "/etc/shoal-web/tls.key"),
        *("--web-proxy", "10.0.0.0/8"),
    ]
    assert {"name": "web", "secret": {"secretName": "web"}} in pod["volumes"]
    objects = [one for one in manifest(RELEASE, _values(sets)) if one["metadata"]["name"] == "shoal-web"]
    found = {one["kind"]: one for one in objects}
    assert set(found) == {"Service", "NetworkPolicy", "ClusterRole", "ClusterRoleBinding"}
    assert found["Service"]["spec"]["selector"] == RELEASE.selector("history")
    assert found["ClusterRoleBinding"]["subjects"][0]["name"] == "shoal-history"
    verbs = {verb for rule in found["ClusterRole"]["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
    assert "secrets" not in str(found["ClusterRole"])


def test_the_web_dashboard_needs_the_process_that_records_the_history() -> None:
    with pytest.raises(UserError, match=r"web\.enabled: the pages are served by the process that records the history"):
        manifest(RELEASE, _values("history.enabled=false,web.enabled=true"))
