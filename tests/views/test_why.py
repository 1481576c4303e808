"""A refusal in words: kube-scheduler's line, then the nearest node and what it lacks."""

from __future__ import annotations

import pytest

from shoal.engine.reasons import EMPTY_GPUS, GPU_PIECE, Cause, Code, Evidence, Shortfall
from shoal.views.remedies import HINDRANCES
from shoal.views.why import CAUSES, NEAREST_BEGINNINGS, kube_line, nearest_sentence, why

GIB = 1 << 30

LINES: dict[str, tuple[Evidence, str]] = {
    "causes are counted": (
        Evidence(5, (Cause(Code.INSUFFICIENT, "cpu", 3), Cause(Code.TAINTED, "dedicated: training", 2))),
        "0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had untolerated taint {dedicated: training}.",
    ),
    "rules about the node itself": (
        Evidence(
            4,
            (
                Cause(Code.AFFINITY, "", 1),
                Cause(Code.NODE_NAME, "b", 1),
                Cause(Code.UNSCHEDULABLE, "", 1),
                Cause(Code.GPU_MODEL, "A100|H100", 1),
            ),
        ),
        (
            "0/4 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) didn't match the requested node name, 1 node(s) were unschedulable, "
            "1 node(s) had no GPU of model A100|H100."
        ),
    ),
    "room on the node": (
        Evidence(
            4,
            (
                Cause(Code.NO_DEVICE, "4 empty GPUs", 2),
                Cause(Code.TOO_MANY_PODS, "", 2),
                Cause(Code.PORTS, "80", 1),
            ),
        ),
        (
            "0/4 nodes are available: 2 node(s) didn't have 4 empty GPUs, 2 Too many pods, "
            "1 node(s) didn't have free ports for the requested pod ports."
        ),
    ),
    "no nodes": (Evidence(0, ()), "no nodes available to schedule pods."),
    "room has appeared since": (
        Evidence(3, (Cause(Code.INSUFFICIENT, "cpu", 2),), 1, "b"),
        "1/3 nodes are available: 2 Insufficient cpu.",
    ),
    "nothing is wrong": (Evidence(3, (), 3, "a"), "3/3 nodes are available."),
}


@pytest.mark.parametrize(("evidence", "line"), LINES.values(), ids=LINES)
def test_kube_line(evidence: Evidence, line: str) -> None:
    assert kube_line(evidence) == line


def lacking(*shortfalls: Shortfall) -> Evidence:
    return Evidence(9, (), 0, "gpu-7", shortfalls)


SENTENCES: dict[str, tuple[Evidence, str]] = {
    "cores": (
        lacking(Shortfall("cpu", 32000, 12500, 64000)),
        "The nearest node is gpu-7: it has 12.5 of 32 cores free.",
    ),
    "one core": (
        lacking(Shortfall("cpu", 1000, 999, 64000)),
        "The nearest node is gpu-7: it has 0.999 of 1 core free.",
    ),
    "memory in the largest unit that shows the difference": (
        lacking(Shortfall("memory", 64 * GIB, 64 * GIB - (1 << 20), 99 * GIB)),
        "The nearest node is gpu-7: it has 65,535 of 65,536 MiB of memory free.",
    ),
    "memory and GPUs": (
        lacking(
            Shortfall("memory", 128 * GIB, 100 * GIB, 999 * GIB),
            Shortfall(EMPTY_GPUS, 4, 2, 8, Code.NO_DEVICE),
        ),
        "The nearest node is gpu-7: it has 100 of 128 GiB of memory free and 2 of 4 empty GPUs.",
    ),
    "a part of a GPU": (
        lacking(Shortfall(GPU_PIECE, 300, 199, 1000, Code.NO_DEVICE)),
        "The nearest node is gpu-7: it has 199 of 300 thousandths of one GPU.",
    ),
    "another device": (
        lacking(Shortfall("amd.com/gpu", 2, 1, 8)),
        "The nearest node is gpu-7: it has 1 of 2 amd.com/gpu free.",
    ),
    "an overcommitted node has nothing, not less": (
        lacking(Shortfall("cpu", 1000, -500, 8000)),
        "The nearest node is gpu-7: it has 0 of 1 core free.",
    ),
    "things without an amount": (
        lacking(
            Shortfall("cpu", 2000, 0, 8000),
            Shortfall("pods", 1, 0, 110, Code.TOO_MANY_PODS),
            Shortfall("80, 443", 1, 0, 1, Code.PORTS),
        ),
        "The nearest node is gpu-7: it has 0 of 2 cores free, takes no more pods and has host port 80 or 443 taken.",
    ),
    "too small even when empty": (
        lacking(Shortfall("cpu", 32000, 0, 64000), Shortfall(EMPTY_GPUS, 16, 1, 8, Code.NO_DEVICE)),
        "No node that may take this pod is large enough, even empty: gpu-7 has 8 of 16 GPUs.",
    ),
    "no GPUs anywhere": (
        lacking(Shortfall(GPU_PIECE, 300, 0, 0, Code.NO_DEVICE)),
        "No node that may take this pod is large enough, even empty: gpu-7 has no GPU.",
    ),
    "no node passes the rules": (
        Evidence(9, (Cause(Code.AFFINITY, "", 9),)),
        "No node may take this pod, however empty: its rules about nodes, or their taints, leave none.",
    ),
    "room has appeared since": (Evidence(9, (), 1, "gpu-7"), "It fits by now, for example on gpu-7."),
    "no nodes": (Evidence(0, ()), "The cluster has no nodes yet."),
}


@pytest.mark.parametrize(("evidence", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_nearest_sentence(evidence: Evidence, sentence: str) -> None:
    assert nearest_sentence(evidence) == sentence
    assert sentence.startswith(NEAREST_BEGINNINGS)


def test_the_whole_answer_is_one_line() -> None:
    evidence = lacking(Shortfall("cpu", 2000, 0, 8000))
    assert why(evidence) == f"{kube_line(evidence)} {nearest_sentence(evidence)}"
    assert "\n" not in why(evidence)


ABOUT_THE_WHOLE = {
    Code.PLACED,
    Code.NOMINATED,
    Code.PREEMPTED,
    Code.CONSOLIDATED,
    Code.OVER_LIMIT,
    Code.OVER_QUOTA,
    Code.STALE,
    Code.GANG,
    Code.GANG_TOO_SMALL,
    Code.GANG_UNKNOWN,
    Code.GANG_MALFORMED,
    Code.TOPOLOGY,
    Code.NO_NODES,
    Code.NOWHERE,
    Code.GATED,
    Code.VOLUMES,
    Code.FORBIDDEN,
}
"""Codes of a pod or gang as such; every other is one rule's part in turning nodes away."""


def test_every_cause_has_words() -> None:
    assert set(CAUSES) | set(HINDRANCES) == set(Code) - ABOUT_THE_WHOLE
