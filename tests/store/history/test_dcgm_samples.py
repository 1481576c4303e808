"""The exposition of a DCGM exporter as samples: the right device, and nothing that is no number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.store.history.dcgm_samples import device_rows
from shoal.store.history.sample_blocks import METRICS

GPU = 'gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100",Hostname="n"'
TEXT = f"""# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{GPU},container="c",namespace="lab",pod="train-0"}} 90
DCGM_FI_DEV_FB_USED{{{GPU}}} 30000 1790000000000
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{GPU}}} 0.800000
DCGM_FI_PROF_SM_ACTIVE{{{GPU}}} 0.5
DCGM_FI_DEV_POWER_USAGE{{{GPU}}} N/A
DCGM_FI_DEV_XID_ERRORS{{{GPU},err_code="79",err_msg="fell \\"off\\" the }} bus"}} 79
DCGM_FI_DEV_SM_CLOCK{{{GPU}}} 1980
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{GPU},GPU_I_PROFILE="1g.10gb",GPU_I_ID="7",namespace="lab",pod="small"}} 0.25
"""


def test_a_row_has_the_values_of_its_gpu_or_instance() -> None:
    whole, instance = device_rows(TEXT)
    assert (whole.device, whole.instance, whole.namespace, whole.pod) == ("GPU-a", "", "lab", "train-0")
    found = dict(zip(METRICS, whole.values, strict=True))
    assert found == {
        "util": 90.0,
        "sm": 0.5,
        "tensor": None,
        "dram": None,
        "memory": 30000.0,
        "power": None,
        "temperature": None,
        "xid": 79.0,
    }
    assert (instance.device, instance.instance, instance.pod) == ("GPU-a", "7", "small")
    assert instance.values[METRICS.index("sm")] == 0.25


def test_a_gpu_that_several_pods_share_is_one_row() -> None:
    lines = "".join(f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-a",pod="p{at}",namespace="n"}} 40\n' for at in range(3))
    assert [row.values[0] for row in device_rows(lines)] == [40.0]


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for row in device_rows(f"DCGM_FI_DEV_GPU_UTIL{{{text}\nDCGM_FI_DEV_GPU_UTIL{text}"):
        assert row.device


_LINE = 'DCGM_FI_DEV_GPU_TEMP{UUID="GPU-1",pod="a"} 40'


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a"} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="b"} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a}"} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a"}"} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a"} 300 # {trace="1"} 5',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a\\"} 300',
        'DCGM_FI_DEV_POWER_USAGE{UUID="GPU-1",pod="a" 300',
    ],
)
def test_a_line_says_the_same_behind_lines_of_the_same_device(line: str) -> None:
    power, pod = METRICS.index("power"), device_rows(line)
    behind = device_rows(f"{_LINE}\n{line}\n{line}")[0]
    alone = pod[0] if pod else None
    assert behind.values[power] == (alone.values[power] if alone else None)
    assert behind.pod == (alone.pod if alone else "a")
