"""What an admission puts on a job comes off again without a trace, whatever the owner wrote before."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.job_scenes import SCENES, template
from shoal.controllers.queued_jobs.job_kinds import BY_KIND, ROWS
from shoal.controllers.queued_jobs.workloads import pod_set_of
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError, PodSetInfo
from shoal.store.live.item import Obj
from shoal.store.queues.job_parts import dig, nobody
from shoal.units.errors import Where

_PAGE = Path(__file__).parents[3] / "docs" / "jobs.md"
_WRAPPED: Obj = {"apiVersion": "v1", "kind": "Pod", **template()}
_SHARED: Obj = {
    "type": "Java",
    "nodeSelector": {"disk": "fast"},
    "driver": {"memory": "1g"},
    "executor": {"instances": 2},
}
JOBS: dict[str, tuple[tuple[str, str], Obj]] = {
    scene.name: ((scene.kind.group, scene.kind.name), scene.spec) for scene in SCENES
} | {
    "job": (("batch", "Job"), {"parallelism": 2, "template": template(nodeSelector={"zone": "a"})}),
    "appwrapper": (("workload.codeflare.dev", "AppWrapper"), {"components": [{"template": _WRAPPED}]}),
    "spark with one selector for both": (("sparkoperator.k8s.io", "SparkApplication"), _SHARED),
}


def _clothes(name: str, count: int, **more: Any) -> PodSetInfo:
    plain: Obj = {
        "labels": {"kueue.x-k8s.io/podset": name},
        "annotations": {"kueue.x-k8s.io/workload": "w"},
        "node_selector": {"pool": "gold"},
        "tolerations": [{"key": "gold", "operator": "Exists"}],
        "gates": [],
    }
    return PodSetInfo(name, count, **plain | more)


def _dress(group_kind: tuple[str, str], job: Obj) -> tuple[Obj, Obj]:
    """The job as it runs, and as it is afterwards."""
    row = BY_KIND[group_kind]
    parts = row.shape.read(job, Where(), nobody)
    pod_sets = {part.name: pod_set_of(part) for part in parts}
    worn = deepcopy(job)
    row.dressing.put_on(worn, parts, {part.name: _clothes(part.name, part.count) for part in parts})
    restored_template = deepcopy(worn)
    row.dressing.take_off(restored_template, row.shape.read(worn, Where(), nobody), pod_sets)
    return worn, restored_template


@pytest.mark.parametrize(("group_kind", "spec"), JOBS.values(), ids=JOBS)
def test_what_is_put_on_comes_off_without_a_trace(group_kind: tuple[str, str], spec: Obj) -> None:
    job = {"metadata": {"name": "x"}, "spec": deepcopy(spec)}
    worn, restored_template = _dress(group_kind, job)
    assert worn != job
    assert restored_template == job


@pytest.mark.parametrize(("group_kind", "spec"), JOBS.values(), ids=JOBS)
def test_a_job_in_its_clothes_still_asks_for_the_same_pods(group_kind: tuple[str, str], spec: Obj) -> None:
    job = {"metadata": {"name": "x"}, "spec": deepcopy(spec)}
    worn, _ = _dress(group_kind, job)
    read = BY_KIND[group_kind].shape.read
    before, after = read(job, Where(), nobody), read(worn, Where(), nobody)
    assert [(one.name, one.count) for one in before] == [(one.name, one.count) for one in after]
    assert [dig(one.template, ("spec", "containers")) for one in before] == [
        dig(one.template, ("spec", "containers")) for one in after
    ]


_TEXTS = st.dictionaries(st.sampled_from(("a", "b", "pool")), st.sampled_from(("1", "gold")), max_size=3)
_TOLERATIONS = st.lists(
    st.fixed_dictionaries({"key": st.sampled_from("xy"), "operator": st.just("Exists")}), max_size=2
)


@settings(max_examples=examples(60), deadline=None)
@given(labels=_TEXTS, annotations=_TEXTS, selector=_TEXTS, tolerations=_TOLERATIONS, is_bare=st.booleans())
def test_any_template_is_given_back(
    labels: Obj, annotations: Obj, selector: Obj, tolerations: list[Obj], is_bare: bool
) -> None:
    spec = {"containers": [], "nodeSelector": selector, "tolerations": tolerations}
    meta = {"labels": labels, "annotations": annotations}
    if is_bare:
        spec = {key: value for key, value in spec.items() if value}
        meta = {key: value for key, value in meta.items() if value}
    job = {"metadata": {"name": "x"}, "spec": {"template": {"metadata": meta, "spec": spec}}}
    try:
        _, restored_template = _dress(("batch", "Job"), job)
    except PodSetConflictError:
        assert selector.get("pool", "gold") != "gold"
        return
    assert _without_nothing(restored_template) == _without_nothing(job)


def _without_nothing(value: Any) -> Any:
    """Empty maps and lists mean the same as none."""
    if isinstance(value, dict):
        return {key: inner for key, each in value.items() if (inner := _without_nothing(each)) not in ({}, [])}
    return value


def test_the_page_for_people_names_every_row() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    assert [row.framework for row in ROWS if f"`{row.framework}`" not in page] == []
