"""Every word of Kueue's cases becomes a fact, and what nobody reads is told."""

from __future__ import annotations

import msgspec
import pytest

from .kueue.case import Case, case_of
from .kueue.facts import queues_of, seconds, settings_of
from .kueue.workloads import NOW_S, holding_of, waiting_of
from .kueue_cases import domains, holding, result_of, scenario, waiting


def test_what_is_expected_is_no_part_of_a_case() -> None:
    assert "expect" not in {field.name for field in msgspec.structs.fields(Case)}


def test_every_word_about_a_workload_becomes_a_fact() -> None:
    said = holding(
        "a",
        priority=3,
        uid="u",
        creationOffsetSeconds=-5,
        quotaReservedOffsetSeconds=-2,
        evicted={"reason": "AdmissionCheck", "offsetSeconds": -1},
        admissionCheckStates=[{"name": "check", "state": "Retry"}],
        reclaimablePods=[{"name": "main", "count": 1}],
        unhealthyNodes=["x1"],
        podSet={
            "minCount": 1,
            "nodeSelector": {"a": "b"},
            "tolerations": [{"key": "t", "operator": "Exists"}],
            "requiredNodeAffinity": [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}],
            "preferredNodeAffinity": [{"weight": 1, "preference": {}}],
            "topologyRequest": {
                "required": "rack",
                "podSetGroupName": "g",
                "podsetSliceRequiredTopologyConstraints": [
                    {"topology": "rack", "size": 4},
                    {"topology": "host", "size": 2},
                ],
            },
            "topologyAssignment": domains(x2=1, x1=2),
            "delayedTopologyRequest": "Ready",
        },
    )
    (facts,) = holding_of(case_of(scenario(admitted=[said])))
    assert (facts.priority, facts.uid, facts.created_s, facts.reserved_s) == (3, "u", NOW_S - 5, NOW_S - 2)
    assert (facts.evicted_s, facts.evicted_why, facts.checks) == (NOW_S - 1, "AdmissionCheck", {"check": "Retry"})
    assert (facts.reclaimable, facts.unhealthy_nodes, facts.admitted) == ({"main": 1}, ("x1",), True)
    (pod_set,) = facts.pod_sets
    assert (pod_set.min_count, pod_set.selector, len(pod_set.tolerations), len(pod_set.preferred)) == (
        1,
        {"a": "b"},
        1,
        1,
    )
    assert pod_set.affinity is not None
    assert pod_set.topology is not None
    assert (pod_set.topology.slice_level, pod_set.topology.slice_size) == ("rack", 4)
    assert [layer.size for layer in pod_set.topology.layers] == [4, 2]
    assert facts.admission is not None
    (held,) = facts.admission.pod_sets
    assert (held.usage, held.delayed) == ({"cpu": 1000}, "Ready")
    assert held.topology is not None
    assert held.topology.domains == ((("x1",), 2), (("x2",), 1))


def test_a_flavor_that_must_not_exist_does_not() -> None:
    assert queues_of(case_of(scenario(intentionallyMissing=["default"]))).flavors == {}


def test_a_boost_of_priority_counts_where_its_gate_is_on() -> None:
    boosted = [waiting("a", priority=1, annotations={"kueue.x-k8s.io/priority-boost": "5"})]
    for value, priority in ((True, 6), (False, 1)):
        gates = {"PriorityBoost": {"value": value, "default": False}}
        (facts,) = waiting_of(case_of(scenario(pending=boosted, featureGates=gates)))
        assert facts.priority == priority


def test_settings_come_from_config_and_gates() -> None:
    config = {
        "fairSharing": {"enabled": True, "preemptionStrategies": ["LessThanInitialShare"]},
        "admissionFairSharing": {"usageHalfLifeTime": "1h30m", "resourceWeights": {"cpu": 2}},
        "waitForPodsReady": {"blockAdmission": True, "timeout": "90s", "requeuingStrategy": {"backoffLimitCount": 3}},
    }
    gates = {"PartialAdmission": {"value": False, "default": True}, "New": {"value": True, "default": False}}
    found = settings_of(case_of(scenario(config=config, featureGates=gates)))
    assert (found.fair_sharing, found.fair_strategies) == (True, ("LessThanInitialShare",))
    assert (found.usage_half_life_s, found.usage_sampling_s, found.usage_weights) == (5400, 300, {"cpu": 2})
    assert (found.block_admission, found.ready_timeout_s, found.backoff_limit) == (True, 90, 3)
    assert ("PartialAdmission" in found.gates, "New" in found.gates) == (False, True)
    off = {"AdmissionFairSharing": {"value": False, "default": True}}
    assert settings_of(case_of(scenario(config=config, featureGates=off))).usage_half_life_s is None


@pytest.mark.parametrize(("text", "wanted"), [("5m", 300), ("168h", 604800), ("1.5s", 1.5), ("0s", 0), ("20ms", 0.02)])
def test_durations_are_read(text: str, wanted: float) -> None:
    assert seconds(text) == pytest.approx(wanted)


def test_a_field_that_nobody_reads_is_told() -> None:
    pending = waiting("a", surprising=1, podSet={"odd": True})
    assert result_of(scenario(pending=[pending], more=1)).notes == [
        "not read: more",
        "not read: pending.podSets.odd",
        "not read: pending.surprising",
    ]
