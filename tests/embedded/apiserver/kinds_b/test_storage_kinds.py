from __future__ import annotations

import copy
from typing import Any

import pytest

from build.kind_objects import complaints, created, texts
from shoal.embedded.apiserver.kinds.table import STRATEGIES

Obj = dict[str, Any]
STORAGE = "storage.k8s.io"
CLAIMS = STRATEGIES["", "persistentvolumeclaims"]


def claim(size: str = "1Gi", **spec: Any) -> Obj:
    whole = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"metadata": {"name": "c", "namespace": "default"}, "spec": whole}


def volume(**spec: Any) -> Obj:
    whole = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/d"}, **spec}
    return {"metadata": {"name": "v", "creationTimestamp": "2026-11-21T10:00:00Z"}, "spec": whole}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"accessModes": []}, "spec.accessModes: Required value: at least 1 access mode is required"),
        ({"resources": {}}, "spec.resources[storage]: Required value"),
        ({"accessModes": ["ReadWriteOncePod", "ReadWriteMany"]},
         "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"),
        ({"volumeMode": "Other"},
         'spec.volumeMode: Unsupported value: "Other": supported values: "Block", "Filesystem"'),
        ({"dataSourceRef": {"kind": "Snapshot", "name": "s"}},
         ('spec.dataSourceRef: Invalid value: "Snapshot": must be \'PersistentVolumeClaim\' when referencing the '
         "default apiGroup")),
    ],
)  # fmt: skip
def test_claims_are_refused_in_the_words_clients_know(spec: Obj, said: str) -> None:
    assert said in complaints("", "persistentvolumeclaims", claim(**spec))


def test_a_bound_claim_may_grow_and_nothing_else() -> None:
    old = created("", "persistentvolumeclaims", claim())
    old["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    bigger = copy.deepcopy(old)
    bigger["spec"]["resources"]["requests"]["storage"] = "2Gi"
    assert CLAIMS.validate_update(bigger, old) == []
    smaller = copy.deepcopy(old)
    smaller["spec"]["resources"]["requests"]["storage"] = "512Mi"
    assert texts(CLAIMS.validate_update(smaller, old)) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]
    other = copy.deepcopy(old)
    other["spec"]["accessModes"] = ["ReadWriteMany"]
    (text,) = texts(CLAIMS.validate_update(other, old))
    assert text.startswith(
        "spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for "
        "bound claims\n"
    )


def test_a_claim_gets_its_volume_and_its_class_once() -> None:
    old = created("", "persistentvolumeclaims", claim())
    new = copy.deepcopy(old)
    new["spec"] |= {"volumeName": "v", "storageClassName": "fast"}
    assert CLAIMS.validate_update(new, old) == []
    newer = copy.deepcopy(new)
    newer["spec"]["volumeName"] = "w"
    assert len(CLAIMS.validate_update(newer, new)) == 1


def test_a_volume_is_in_one_place_for_good() -> None:
    old = created("", "persistentvolumes", volume())
    assert old["status"] == {"phase": "Pending", "lastPhaseTransitionTime": "2026-11-21T10:00:00Z"}
    assert old["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    strategy = STRATEGIES["", "persistentvolumes"]
    moved = copy.deepcopy(old)
    moved["spec"]["hostPath"]["path"] = "/e"
    (text,) = texts(strategy.validate_update(moved, old))
    assert text.startswith(
        "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation\n"
    )
    assert complaints("", "persistentvolumes", volume(nfs={"server": "a", "path": "/b"})) == [
        "spec.nfs: Forbidden: may not specify more than 1 volume type"
    ]
    assert complaints("", "persistentvolumes", volume(hostPath=None)) == [
        "spec: Required value: must specify a volume type"
    ]


def test_a_storage_class_is_written_once() -> None:
    old = created(STORAGE, "storageclasses", {"metadata": {"name": "fast"}, "provisioner": "example.com/disk"})
    assert (old["reclaimPolicy"], old["volumeBindingMode"]) == ("Delete", "Immediate")
    new = old | {"provisioner": "example.com/other", "reclaimPolicy": "Retain", "allowVolumeExpansion": True}
    assert texts(STRATEGIES[STORAGE, "storageclasses"].validate_update(new, old)) == [
        'provisioner: Invalid value: "example.com/other": field is immutable',
        'reclaimPolicy: Invalid value: "Retain": field is immutable',
    ]
    assert complaints(STORAGE, "storageclasses", {"metadata": {"name": "x"}}) == ["provisioner: Required value"]


def test_an_empty_topology_term_is_told_as_a_duplicate() -> None:
    made = {"metadata": {"name": "x"}, "provisioner": "example.com/disk", "allowedTopologies": [{}]}
    assert complaints(STORAGE, "storageclasses", made) == [
        'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'
    ]


def test_an_attachment_names_one_volume() -> None:
    def attached(**source: Any) -> list[str]:
        spec = {"attacher": "disk.example.com", "nodeName": "n1", "source": source}
        return complaints(STORAGE, "volumeattachments", {"metadata": {"name": "a"}, "spec": spec})

    assert attached(persistentVolumeName="v") == []
    one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
    assert attached() == [f"spec.source: Required value: {one}"]


def test_drivers_say_how_they_work() -> None:
    made = created(STORAGE, "csidrivers", {"metadata": {"name": "disk.example.com"}})
    assert made["spec"]["attachRequired"] is True
    new = copy.deepcopy(made)
    new["spec"]["attachRequired"] = False
    assert texts(STRATEGIES[STORAGE, "csidrivers"].validate_update(new, made)) == [
        "spec.attachedRequired: Invalid value: false: field is immutable"
    ]


@pytest.mark.parametrize(
    "home",
    [
        ("", "services"), ("", "persistentvolumes"), ("", "persistentvolumeclaims"), ("", "resourcequotas"),
        ("", "serviceaccounts"), (STORAGE, "storageclasses"), (STORAGE, "csidrivers"), (STORAGE, "csinodes"),
        (STORAGE, "volumeattachments"),
    ],
)  # fmt: skip
def test_some_deletions_answer_with_what_is_gone(home: tuple[str, str]) -> None:
    assert STRATEGIES[home].returns_deleted
    assert not STRATEGIES["", "configmaps"].returns_deleted
