"""Replicas of model servers follow their own metrics: what is read, what makes them grow, and what lets one go."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from build.depth import examples
from shoal.autoscale.serving.cold_start import ColdStart
from shoal.autoscale.serving.replicas import (
    ReplicaLoad,
    ServingPolicy,
    ServingPrices,
    ServingState,
    decide_replicas,
)
from shoal.autoscale.serving.server_load import ServerLoad, quantile, server_load
from shoal.prometheus.samples import samples_of

TEXTS = [
    (
        "vllm",
        (
            'vllm:num_requests_running{model_name="m"} 3\nvllm:num_requests_waiting{model_name="m"} 2\n'
            'vllm:kv_cache_usage_perc{engine="0"} 0.4\nvllm:kv_cache_usage_perc{engine="1"} 0.6\n'
        ),
        ServerLoad(3, 2, 0.6),
    ),
    ("an older vllm", "vllm:num_requests_running 1\nvllm:gpu_cache_usage_perc 0.5\n", ServerLoad(1, 0, 0.5)),
    (
        "a vllm that sleeps",
        (
            'vllm:num_requests_running 0\nvllm:engine_sleep_state{sleep_state="awake"} 0\n'
            'vllm:engine_sleep_state{sleep_state="weights_offloaded"} 1\n'
        ),
        ServerLoad(0, 0, 0.0, is_asleep=True),
    ),
    ("sglang", "sglang:num_running_reqs 4\nsglang:num_queue_reqs 1\nsglang:token_usage 0.2\n", ServerLoad(4, 1, 0.2)),
    ("trtllm-serve", "trtllm_num_requests_running 4\ntrtllm_kv_cache_utilization 0.3\n", ServerLoad(4, 0, 0.3)),
    (
        "triton",
        (
            'nv_trt_llm_request_metrics{request_type="active"} 7\n'
            'nv_trt_llm_request_metrics{request_type="scheduled"} 5\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used"} 30\n'
            'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="max"} 60\n'
        ),
        ServerLoad(5, 2, 0.5),
    ),
    ("tgi", "tgi_batch_current_size 2\ntgi_queue_size 9\n", ServerLoad(2, 9)),
    ("something else", "http_requests_total 4\n", None),
    ("no number", "vllm:num_requests_running NaN\n", None),
]


@pytest.mark.parametrize(("_name", "text", "wanted"), TEXTS, ids=[row[0] for row in TEXTS])
def test_the_load_of_a_server_is_read(_name: str, text: str, wanted: ServerLoad | None) -> None:
    assert server_load(samples_of(text)) == wanted


def test_the_time_to_the_first_token_is_that_of_the_requests_between_two_readings() -> None:
    before = {0.1: 10.0, 1.0: 10.0, float("inf"): 10.0}
    now = {0.1: 10.0, 1.0: 20.0, float("inf"): 20.0}
    assert quantile(now, before, 0.9) == pytest.approx(0.91)
    assert quantile(now, now, 0.9) is None
    assert quantile({}, {}, 0.9) is None
    restarted = {0.1: 4.0, 1.0: 4.0, float("inf"): 4.0}
    assert quantile(restarted, now, 0.5) == pytest.approx(0.05)
    assert quantile({1.0: 0.0, float("inf"): 5.0}, {}, 0.9) == 1.0


def state(*loads: ServerLoad | None, **fields: float) -> ServingState:
    replicas = [ReplicaLoad(1000.0, load) for load in loads]
    return ServingState(replicas, int(fields.pop("wanted", len(loads))), **fields)


BUSY, IDLE = ServerLoad(8, 0, 0.3), ServerLoad(0, 0, 0.0)
POLICY = ServingPolicy(target_concurrency=8, ttft_objective_s=1.0, most=6)
CALM = {"calm_s": 1e6, "idle_s": 1e6}

DECISIONS = [
    ("requests that wait", state(ServerLoad(8, 9, 0.3)), 3, "17 requests"),
    (
        "a full cache",
        state(ServerLoad(2, 0, 0.95), ServerLoad(2, 0, 0.95)),
        3,
        "95% of the cache is in use instead of 80%",
    ),
    ("a late first token", state(BUSY, BUSY, ttft_p90_s=2.1), 5, "the first token takes 2.10 s instead of 1 s"),
    ("more than the maximum", state(ServerLoad(8, 99, 0.3)), 6, "107 requests, 8 for each replica, limited to 6"),
    ("requests in the gateway", state(BUSY, queued=9), 3, "17 requests"),
    ("the load needs all", state(BUSY, BUSY, **CALM), 2, "the load needs all replicas"),
    ("a low load that is new", state(ServerLoad(1), IDLE, calm_s=5.0), 2, "one replica may go if the load stays low"),
    ("a low load that stayed", state(ServerLoad(1), IDLE, **CALM), 1, "the load stayed low for 60 s"),
    ("not within a cold start", state(ServerLoad(1), IDLE, calm_s=100.0, cold_start_s=300.0), 2, "for 300 s"),
    ("one at a time", state(IDLE, IDLE, IDLE, **CALM), 2, "the load stayed low"),
    (
        "a cache that would be full",
        state(ServerLoad(1, 0, 0.5), ServerLoad(1, 0, 0.5), **CALM),
        2,
        "the cache of the other replicas would be 100% full",
    ),
    ("a replica without metrics", state(IDLE, None, **CALM), 2, "the load of a replica is not known"),
    ("replicas that start", state(IDLE, wanted=2, **CALM), 2, "replicas are starting"),
    ("the minimum", state(IDLE, **CALM), 1, "the minimum of replicas"),
]


@pytest.mark.parametrize(("_name", "given_", "replicas", "part"), DECISIONS, ids=[row[0] for row in DECISIONS])
def test_the_number_of_replicas(_name: str, given_: ServingState, replicas: int, part: str) -> None:
    found = decide_replicas(given_, POLICY)
    assert found.replicas == replicas
    assert part in found.reason


def test_a_replica_that_warms_up_does_not_count_as_idle() -> None:
    young = ServingState([ReplicaLoad(1000.0, BUSY), ReplicaLoad(10.0, IDLE)], 2, calm_s=1e6, warm_up_s=120.0)
    assert decide_replicas(young, POLICY).reason == "replicas are starting"


def test_the_last_replica_goes_only_if_requests_are_kept_and_a_cold_start_is_cheaper() -> None:
    policy = ServingPolicy(least=0, is_buffered=True)
    prices = ServingPrices(replica_per_h=36.0, cold_start=6.0)
    early = decide_replicas(state(IDLE, calm_s=800.0, idle_s=800.0, cold_start_s=300.0), policy, prices)
    assert (early.replicas, early.wait_s) == (1, 100.0)
    late = decide_replicas(state(IDLE, calm_s=900.0, idle_s=900.0, cold_start_s=300.0), policy, prices)
    assert (late.replicas, late.reason) == (0, "no requests for 900 s")
    lost = decide_replicas(state(IDLE, **CALM), ServingPolicy(least=0))
    assert (lost.replicas, lost.reason[:22]) == (1, "the last replica stays")


def test_a_request_brings_the_first_replica() -> None:
    policy = ServingPolicy(least=0, is_buffered=True)
    assert decide_replicas(state(queued=0.0), policy).replicas == 0
    assert decide_replicas(state(queued=1.0), policy).replicas == 1
    assert decide_replicas(state(queued=30.0), policy).replicas == 4


def test_a_cold_start_is_what_most_measured_starts_need_phase_by_phase() -> None:
    start = ColdStart()
    assert start.total_s() == 0.0
    for number in range(1, 11):
        start = start.with_start({"node": 100.0 + number, "weights": 30.0, "other": 7.0, "warm_up": float("nan")})
    assert (start.phase_s("node"), start.phase_s("weights"), start.total_s()) == (109.0, 30.0, 139.0)
    for _ in range(50):
        start = start.with_start({"weights": 5.0})
    assert (start.phase_s("weights"), len(start.measured_s["weights"])) == (5.0, 20)


LOADS = st.none() | st.builds(
    ServerLoad, st.integers(0, 20), st.integers(0, 20), st.floats(0, 1), st.sampled_from([False, False, True])
)
STATES = st.builds(
    ServingState,
    st.lists(st.builds(ReplicaLoad, st.floats(0, 500), LOADS), max_size=6),
    st.integers(0, 8),
    st.none() | st.floats(0, 5),
    st.integers(0, 30),
    st.floats(0, 2000),
    st.floats(0, 2000),
    st.floats(0, 900),
    st.floats(0, 300),
)
POLICIES = st.builds(
    ServingPolicy,
    st.floats(1, 20),
    st.none() | st.floats(0.1, 2),
    least=st.integers(0, 2),
    most=st.integers(2, 8),
    is_buffered=st.booleans(),
)


@settings(max_examples=examples(400))
@given(STATES, POLICIES)
def test_limits_are_kept_and_nothing_shrinks_while_requests_wait_or_a_load_is_unknown(
    given_: ServingState, policy: ServingPolicy
) -> None:
    found = decide_replicas(given_, policy)
    assert found.replicas <= policy.most
    assert found.replicas >= min(policy.least, given_.wanted) or given_.wanted > policy.most
    shrinks = found.replicas < min(given_.wanted, policy.most)
    serving = [one for one in given_.replicas if one.age_s >= given_.warm_up_s]
    if shrinks:
        assert given_.queued == 0
        assert all(one.load is not None and not one.load.waiting for one in serving)
        assert max(given_.calm_s, given_.idle_s) >= max(policy.window_s, given_.cold_start_s)
        assert found.replicas == given_.wanted - 1 or (found.replicas == 0 and policy.is_buffered)


@settings(max_examples=examples(100))
@given(STATES, POLICIES, st.integers(1, 10))
def test_more_waiting_requests_never_lower_the_number(given_: ServingState, policy: ServingPolicy, more: int) -> None:
    busier = structs.replace(given_, queued=given_.queued + more)
    assert decide_replicas(busier, policy).replicas >= decide_replicas(given_, policy).replicas
