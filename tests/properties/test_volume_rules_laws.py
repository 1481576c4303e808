"""The rule about nodes that a pod's volumes come to lets through those nodes on which they can be had, and no other."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.told_objects import Told
from shoal.client.kind import STORAGE_CLASSES, VOLUME_CLAIMS, VOLUMES
from shoal.client.volumes.needs import SELECTED_NODE, Mounts, VolumeNeeds
from shoal.client.volumes.values import Known, StorageClass, Volume, VolumeClaim
from shoal.store.volumes.reach import rule_of

Obj = dict[str, Any]
NODES = {f"n{at}": {"host": f"n{at}", "zone": "ab"[at % 2]} for at in range(4)}


def affinity(terms: list[list[tuple[str, str]]]) -> Obj:
    made = [
        {"matchExpressions": [{"key": key, "operator": "In", "values": [value]} for key, value in term]}
        for term in terms
    ]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": made}}} if terms else {}


pairs = st.one_of(
    st.tuples(st.just("host"), st.sampled_from(sorted(NODES))), st.tuples(st.just("zone"), st.sampled_from("ab"))
)
terms = st.lists(st.lists(pairs, min_size=1, max_size=2), max_size=2)
volumes = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from("xy"), terms, st.sampled_from(["", "c0", "c1"])), max_size=5
)
claims = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from("xy"), st.sampled_from(["", "", "", "n1"]), st.booleans()),
    min_size=1,
    max_size=3,
)
provisioners = st.tuples(st.booleans(), st.lists(st.sampled_from("ab"), max_size=1))


def told_needs(told: Told) -> VolumeNeeds:
    of = told.informers.of
    return VolumeNeeds(
        Known(of(VOLUME_CLAIMS), VolumeClaim), Known(of(VOLUMES), Volume), Known(of(STORAGE_CLASSES), StorageClass)
    )


@given(volumes, claims, provisioners, provisioners)
@settings(max_examples=examples(120), deadline=None)
def test_a_rule_lets_through_the_nodes_that_will_do(
    has: list[Any], asked: list[Any], x: tuple[bool, list[str]], y: tuple[bool, list[str]]
) -> None:
    told = Told()
    needs = told_needs(told)
    for name, (makes, zones) in (("x", x), ("y", y)):
        topologies = [{"matchLabelExpressions": [{"key": "zone", "values": [zone]}]} for zone in zones]
        by = "disks.example.com" if makes else "kubernetes.io/no-provisioner"
        made = {"provisioner": by, "volumeBindingMode": "WaitForFirstConsumer", "allowedTopologies": topologies}
        told.put(STORAGE_CLASSES, {"metadata": {"name": name}, **made})
    for at, (size, of, where, kept) in enumerate(has):
        common = {"capacity": {"storage": f"{size}Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": of}
        ref = {"claimRef": {"namespace": "team", "name": kept}} if kept else {}
        volume: Obj = {**common, **affinity(where), **ref}
        told.put(VOLUMES, {"metadata": {"name": f"v{at}"}, "spec": volume, "status": {"phase": "Available"}})
    for at, (size, of, selected, is_bound) in enumerate(asked):
        notes = {SELECTED_NODE: selected} if selected else {}
        spec: Obj = {
            "resources": {"requests": {"storage": f"{size}Gi"}},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
        }
        if is_bound and at < len(has):
            spec["volumeName"] = f"v{at}"
            notes["pv.kubernetes.io/bind-completed"] = "yes"
        meta = {"name": f"c{at}", "namespace": "team", "annotations": notes}
        told.put(VOLUME_CLAIMS, {"metadata": meta, "spec": spec})
    needed = needs.needed(Mounts(tuple(("team", f"c{at}") for at in range(len(asked)))))
    assert not isinstance(needed, str)
    rule = rule_of(needs, needed, NODES.items)
    for name, labels in NODES.items():
        reached = all(volume is None or volume.is_reached_from(name, labels) for _, volume in needed.bound)
        will_do = reached and needs.wanted(needed, name, labels) is not None
        assert (rule is None or rule.required is None or rule.required.matches(name, labels)) is will_do
