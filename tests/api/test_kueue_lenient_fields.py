"""What people write by mistake and is taken all the same, with a warning that names the field and the remedy."""

from __future__ import annotations

import json
from typing import Any

from shoal.api.decode import Document, read
from shoal.api.kueue import ClusterQueue, WorkloadPriorityClass
from shoal.api.kueue.probable_mistakes import QUEUE_NAME, misplaced_queue, slips

OLD, NEW = "kueue.x-k8s.io/v1beta1", "kueue.x-k8s.io/v1beta2"
Plain = dict[str, Any]
TEMPLATE: Plain = {"spec": {"containers": [{"name": "c"}]}}


def only(version: str, kind: str, **rest: Any) -> Document:
    raw = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **rest}
    (document,) = read(json.dumps(raw), "x.json")
    return document


def told(document: Document) -> list[str]:
    return [slip.warning(document.where) for slip in slips(document.value)]


def test_a_value_below_spec_is_taken_and_told() -> None:
    document = only(OLD, "WorkloadPriorityClass", spec={"value": 100})
    assert isinstance(document.value, WorkloadPriorityClass)
    assert document.value.value == 100
    (text,) = told(document)
    assert text == (
        "x.json: document 1 (WorkloadPriorityClass x): spec.value: is below spec, where a cluster refuses it; "
        "it is used as value; write value at the top, beside metadata"
    )


def test_a_value_where_it_belongs_is_no_slip() -> None:
    assert told(only(NEW, "WorkloadPriorityClass", value=100)) == []


def test_a_queue_that_no_namespace_may_use_is_told() -> None:
    (text,) = told(only(NEW, "ClusterQueue", spec={}))
    assert "spec.namespaceSelector: is absent, so no namespace may use the queue" in text
    (text,) = told(only(OLD, "ClusterQueue", spec={"namespaceSelector": None}))
    assert "write {} to let every namespace in" in text
    assert told(only(NEW, "ClusterQueue", spec={"namespaceSelector": {}})) == []


def test_a_cohort_under_its_old_name_is_taken_and_told() -> None:
    spec = {"namespaceSelector": {}, "cohort": "all"}
    document = only(NEW, "ClusterQueue", spec=spec)
    assert isinstance(document.value, ClusterQueue)
    assert document.value.spec.cohort_name == "all"
    (text,) = told(document)
    assert "spec.cohort: is called cohortName in v1beta2" in text
    assert told(only(OLD, "ClusterQueue", spec=spec)) == []


def job(labels: Plain, annotations: Plain, template: Plain) -> Document:
    metadata = {"name": "x", "labels": labels, "annotations": annotations}
    spec = {"template": {**TEMPLATE, "metadata": template}}
    return only("batch/v1", "Job", metadata=metadata, spec=spec)


def test_a_queue_named_in_an_annotation_is_found() -> None:
    document = job({}, {QUEUE_NAME: "lq"}, {})
    found = misplaced_queue(document.value)
    assert found is not None
    assert (found.name, found.is_label) == ("lq", False)
    (text,) = told(document)
    assert f'metadata.annotations[{QUEUE_NAME}]: "lq" is an annotation, where no cluster looks for it' in text


def test_a_queue_named_on_the_template_of_a_job_is_found() -> None:
    (text,) = told(job({}, {}, {"labels": {QUEUE_NAME: "lq"}}))
    assert f'spec.template.metadata.labels[{QUEUE_NAME}]: "lq" is on the pod template' in text


def test_a_job_that_names_its_queue_rightly_is_no_slip() -> None:
    assert told(job({QUEUE_NAME: "lq"}, {QUEUE_NAME: "lq"}, {"labels": {QUEUE_NAME: "lq"}})) == []
    assert told(job({}, {}, {})) == []


def test_a_deployment_may_name_the_queue_on_its_template() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"app": "a", QUEUE_NAME: "lq"}}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    assert told(only("apps/v1", "Deployment", spec=spec)) == []


def test_a_job_of_a_kind_without_a_type_is_searched_down_to_its_templates() -> None:
    master = {"template": {**TEMPLATE, "metadata": {"annotations": {QUEUE_NAME: "research-queue"}}}}
    document = only("kubeflow.org/v1", "PyTorchJob", spec={"pytorchReplicaSpecs": {"Master": master}})
    (text,) = told(document)
    assert (
        "document 1 (PyTorchJob x): spec.pytorchReplicaSpecs.Master.template.metadata."
        f'annotations[{QUEUE_NAME}]: "research-queue" is an annotation'
    ) in text


def test_odd_shapes_are_searched_without_harm() -> None:
    deep: Any = {}
    for _ in range(50):
        deep = {"template": deep}
    for spec in (None, 3, [1, {"metadata": 4, "spec": {}}], {"metadata": {"labels": 1, "annotations": []}}, deep):
        assert told(only("example.com/v1", "Thing", spec=spec)) == []
