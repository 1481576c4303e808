"""An admission is injected into jobs of every kind and removed without a trace."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.job_kind_cases import JOB_KIND_CASES, template
from shoal.client.item import Obj
from shoal.controllers.queued_jobs.job_kinds import BY_KIND, JOB_KINDS
from shoal.controllers.queued_jobs.workloads import pod_set_of
from shoal.controllers.queued_work.pod_set_info import PodSetConflictError, PodSetInfo
from shoal.store.queues.job_parts import dig, no_lookup
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
    case.name: ((case.kind.group, case.kind.name), case.spec) for case in JOB_KIND_CASES
} | {
    "job": (("batch", "Job"), {"parallelism": 2, "template": template(nodeSelector={"zone": "a"})}),
    "appwrapper": (("workload.codeflare.dev", "AppWrapper"), {"components": [{"template": _WRAPPED}]}),
    "spark with one selector for both": (("sparkoperator.k8s.io", "SparkApplication"), _SHARED),
}


def _info(name: str, count: int, **more: Any) -> PodSetInfo:
    plain: Obj = {
        "labels": {"kueue.x-k8s.io/podset": name},
        "annotations": {"kueue.x-k8s.io/workload": "w"},
        "node_selector": {"pool": "gold"},
        "tolerations": [{"key": "gold", "operator": "Exists"}],
        "gates": [],
    }
    return PodSetInfo(name, count, **plain | more)


def _injected_and_restored(group_kind: tuple[str, str], job: Obj) -> tuple[Obj, Obj]:
    """The job as it runs, and as it is afterwards."""
    row = BY_KIND[group_kind]
    parts = row.shape.read(job, Where(), no_lookup)
    pod_sets = {part.name: pod_set_of(part) for part in parts}
    injected = deepcopy(job)
    row.injector.inject(injected, parts, {part.name: _info(part.name, part.count) for part in parts})
    restored = deepcopy(injected)
    row.injector.restore(restored, row.shape.read(injected, Where(), no_lookup), pod_sets)
    return injected, restored


@pytest.mark.parametrize(("group_kind", "spec"), JOBS.values(), ids=JOBS)
def test_the_restoration_removes_everything_that_was_injected(group_kind: tuple[str, str], spec: Obj) -> None:
    job = {"metadata": {"name": "x"}, "spec": deepcopy(spec)}
    injected, restored = _injected_and_restored(group_kind, job)
    assert injected != job
    assert restored == job


@pytest.mark.parametrize(("group_kind", "spec"), JOBS.values(), ids=JOBS)
def test_a_job_with_an_injected_admission_requests_the_same_pods(group_kind: tuple[str, str], spec: Obj) -> None:
    job = {"metadata": {"name": "x"}, "spec": deepcopy(spec)}
    injected, _ = _injected_and_restored(group_kind, job)
    read = BY_KIND[group_kind].shape.read
    before, after = read(job, Where(), no_lookup), read(injected, Where(), no_lookup)
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
def test_any_template_is_restored(
    labels: Obj, annotations: Obj, selector: Obj, tolerations: list[Obj], is_bare: bool
) -> None:
    spec = {"containers": [], "nodeSelector": selector, "tolerations": tolerations}
    meta = {"labels": labels, "annotations": annotations}
    if is_bare:
        spec = {key: value for key, value in spec.items() if value}
        meta = {key: value for key, value in meta.items() if value}
    job = {"metadata": {"name": "x"}, "spec": {"template": {"metadata": meta, "spec": spec}}}
    try:
        _, restored = _injected_and_restored(("batch", "Job"), job)
    except PodSetConflictError:
        assert selector.get("pool", "gold") != "gold"
        return
    assert _without_nothing(restored) == _without_nothing(job)


def _without_nothing(value: Any) -> Any:
    """Empty maps and lists mean the same as none."""
    if isinstance(value, dict):
        return {key: inner for key, each in value.items() if (inner := _without_nothing(each)) not in ({}, [])}
    return value


def test_the_documentation_names_every_kind() -> None:
    page = _PAGE.read_text(encoding="utf-8")
    assert [row.framework for row in JOB_KINDS if f"`{row.framework}`" not in page] == []
