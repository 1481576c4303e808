"""Values of objects from the series of exporters, and texts of exporters that are not as they should be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.api.selector_text import parse_label_selector
from shoal.autoscale.exposed_metrics.documents import metric_value_list
from shoal.autoscale.exposed_metrics.gpu_metrics import ObjectValue, metric_names, object_values
from shoal.prometheus.samples import samples_of

TEXT = """
# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1",namespace="a",pod="x",container="c"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",Hostname="n1",namespace="a",pod="x",container="c"} 40
DCGM_FI_DEV_GPU_UTIL{gpu="2",Hostname="n1",namespace="b",pod="y",container="c"} 10
DCGM_FI_DEV_GPU_UTIL{gpu="3",Hostname="n1"} 0
DCGM_FI_DEV_FB_USED{gpu="0",Hostname="n1",namespace="a",pod="x"} 1000
DCGM_FI_DEV_FB_USED{gpu="1",Hostname="n1",namespace="a",pod="x"} 500
up 1
"""


def values(resource: str, metric: str, chosen: str = "") -> list[tuple[str, str, float]]:
    found = object_values(list(samples_of(TEXT)), resource, metric, parse_label_selector(chosen))
    return [(one.namespace, one.name, one.value) for one in found]


def test_use_is_the_mean_over_the_gpus_of_an_object_and_memory_is_the_sum() -> None:
    assert values("pods", "DCGM_FI_DEV_GPU_UTIL") == [("a", "x", 60.0), ("b", "y", 10.0)]
    assert values("nodes", "DCGM_FI_DEV_GPU_UTIL") == [("", "n1", 32.5)]
    assert values("namespaces", "DCGM_FI_DEV_GPU_UTIL") == [("", "a", 60.0), ("", "b", 10.0)]
    assert values("pods", "DCGM_FI_DEV_FB_USED") == [("a", "x", 1500.0)]


def test_series_are_chosen_by_their_labels() -> None:
    assert values("pods", "DCGM_FI_DEV_GPU_UTIL", "gpu=1") == [("a", "x", 40.0)]
    assert values("pods", "DCGM_FI_DEV_GPU_UTIL", "gpu in (7)") == []


def test_only_metrics_of_gpus_are_named() -> None:
    assert metric_names(samples_of(TEXT)) == ["DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL"]


LINES = [
    ('a{b="c"} 1', [("a", {"b": "c"}, 1.0)]),
    ('a{b="c",} 1 1700000000000', [("a", {"b": "c"}, 1.0)]),
    ('a{ b = "c" , d="e" } +Inf', [("a", {"b": "c", "d": "e"}, float("inf"))]),
    (r'a{b="x\"y\\z\n"} 1e3', [("a", {"b": 'x"y\\z\n'}, 1000.0)]),
    ("a 2", [("a", {}, 2.0)]),
    ("a{} 2", [("a", {}, 2.0)]),
    ('a{b="c" d="e"} 1', []),
    ('a{b="c"', []),
    ('a{b="c"}', []),
    ("a two", []),
    ("a 1_0", []),
    ("# a 1", []),
    ("1a 1", []),
    ('bad{ 1\na{b="c"} 1', [("a", {"b": "c"}, 1.0)]),
]


@pytest.mark.parametrize(("text", "wanted"), LINES, ids=[row[0] for row in LINES])
def test_lines_are_read_and_others_skipped(text: str, wanted: list[tuple[str, dict[str, str], float]]) -> None:
    assert [(one.name, dict(one.labels), one.value) for one in samples_of(text)] == wanted


@settings(max_examples=examples(100))
@given(st.text(alphabet='ab{}="\\,. 1\n#', max_size=30))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(one.name for one in samples_of(text))


def test_values_that_are_no_number_are_left_out() -> None:
    values = [ObjectValue("a", "x", float("nan")), ObjectValue("a", "y", 1.5)]
    (item,) = metric_value_list("v1beta2", "pods", "m", values, "now")["items"]
    assert item["describedObject"] == {"kind": "Pod", "apiVersion": "/v1", "name": "y", "namespace": "a"}
    assert (item["metric"], item["value"]) == ({"name": "m", "selector": None}, "1500m")
    older = metric_value_list("v1beta1", "pods", "m", values, "now")["items"][0]
    assert (older["metricName"], older["selector"]) == ("m", None)
