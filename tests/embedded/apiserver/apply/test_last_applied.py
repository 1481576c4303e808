"""From client-side apply to server-side apply: no conflicts with oneself, and an annotation that follows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from build.cluster_schemas import built_in
from build.owners import Explanation
from shoal.embedded.apiserver.apply.last_applied import ANNOTATION
from shoal.embedded.apiserver.status import ApiError

Obj = dict[str, Any]


def config(replicas: int, image: str = "i") -> Obj:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def applied_by_the_client() -> Explanation:
    told = Explanation(built_in("apps/v1", "Deployment"), "apps/v1")
    live = config(3)
    live["metadata"]["annotations"] = {ANNOTATION: json.dumps(config(3)) + "\n"}
    told.write(live, "kubectl-client-side-apply")
    return told


def test_kubectl_takes_over_what_it_applied_itself() -> None:
    told = applied_by_the_client()
    told.apply(config(4), "kubectl")
    assert told.spec["replicas"] == 4
    assert "f:replicas" in told.owned("kubectl")
    assert "f:replicas" not in told.owned("kubectl-client-side-apply")


def test_the_annotation_follows_what_is_applied() -> None:
    told = applied_by_the_client()
    live = told.apply(config(4, "<new>"), "kubectl")
    text = live["metadata"]["annotations"][ANNOTATION]
    assert json.loads(text) == config(4, "<new>")
    assert text.endswith("\n")
    assert "\\u003cnew\\u003e" in text
    assert text.startswith('{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":4,')


def test_another_manager_has_the_conflict() -> None:
    told = applied_by_the_client()
    with pytest.raises(ApiError) as caught:
        told.apply(config(4), "argo")
    assert caught.value.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )


def test_a_field_that_somebody_changed_since_is_a_conflict_for_kubectl_too() -> None:
    told = applied_by_the_client()
    told.edit("scaler", replicas=9)
    with pytest.raises(ApiError) as caught:
        told.apply(config(4, "new"), "kubectl")
    words = 'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas'
    assert caught.value.message == words
    told.apply(config(4, "new"), "kubectl", force=True)
    assert told.spec["replicas"] == 4


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({**config(3), "apiVersion": "apps/v1beta1"})])
def test_an_annotation_that_cannot_be_used_excuses_nothing(text: str) -> None:
    told = applied_by_the_client()
    assert told.live is not None
    told.live["metadata"]["annotations"][ANNOTATION] = text
    with pytest.raises(ApiError):
        told.apply(config(4), "kubectl")


def test_an_object_without_managers_gets_one_for_what_was_there_before() -> None:
    told = applied_by_the_client()
    assert told.live is not None
    del told.live["metadata"]["managedFields"]
    told.apply(config(3), "argo")
    assert told.managers() == ["argo", "before-first-apply"]
    with pytest.raises(ApiError) as caught:
        told.apply(config(5), "argo")
    assert caught.value.message.endswith('conflict with "before-first-apply" using apps/v1: .spec.replicas')
