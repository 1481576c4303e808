"""What typed decoding costs, against the ways that were rejected.

    python -m bench.decode [--pods 5000]

Reads the same `kubectl get pods -o json` list of GPU pods as typed and checked objects (what Shoal does), as bare
dictionaries with the standard library, and by way of dictionaries into the types; with pydantic, where installed,
into models of only the fields this list uses. Prints the time per pod, and how many times slower each is.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from shoal.api.decode import convert, read
from shoal.api.pod import Pod
from shoal.api.wire import ApiStruct, dec_hook
from shoal.units.errors import Where


class _Pods(ApiStruct, frozen=True):
    items: tuple[Pod, ...]


_PODS = msgspec.json.Decoder(_Pods, dec_hook=dec_hook)


def fleet(pods: int) -> bytes:
    """Pods as a cluster gives them back: with labels, owners, tolerations, a status, and fields nobody reads."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [_pod(index) for index in range(pods)]}).encode()


def _pod(index: int) -> dict[str, Any]:
    amounts = {"cpu": f"{index % 16 + 1}", "memory": f"{index % 64 + 4}Gi", "nvidia.com/gpu": str(index % 8 + 1)}
    tolerations = [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"train-{index}",
            "namespace": f"team-{index % 20}",
            "uid": f"00000000-0000-0000-0000-{index:012d}",
            "resourceVersion": str(index),
            "labels": {"app": "train", "job": f"job-{index // 8}", "team": f"team-{index % 20}"},
            "annotations": {"example.com/note": "x" * 120},
            "creationTimestamp": "2026-01-31T12:00:00Z",
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{index // 8}", "uid": "u", "controller": True}
            ],
        },
        "spec": {
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/train:1",
                    "command": ["python", "-m", "train"],
                    "env": [{"name": f"KEY_{n}", "value": "value"} for n in range(6)],
                    "resources": {"requests": amounts, "limits": amounts},
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                }
            ],
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
            "tolerations": tolerations,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "schedulerName": "shoal",
            "priority": 100,
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-01-31T12:00:05Z",
            "conditions": [{"type": t, "status": "True"} for t in ("Initialized", "Ready", "PodScheduled")],
            "containerStatuses": [{"name": "main", "ready": True, "restartCount": 0}],
        },
    }


def _typed(data: bytes) -> None:
    _PODS.decode(data)


def _through_dictionaries(data: bytes) -> None:
    for item in json.loads(data)["items"]:
        convert(item, Pod, Where())


def _pydantic() -> Callable[[bytes], object] | None:
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError:
        return None
    make = pydantic.create_model
    # Built by hand from `Any`: the models exist only where pydantic does, and only for this comparison.
    amounts: Any = (dict[str, str], {})
    text: Any = (str, "")
    resources = make("Resources", requests=amounts, limits=amounts)
    env: Any = make("Env", name=text, value=text)
    container: Any = make("Container", name=text, resources=(resources, None), env=(list[env], []))
    seconds: Any = (int | None, None)
    toleration: Any = make("Toleration", key=text, operator=text, effect=text, tolerationSeconds=seconds)
    spec = make(
        "Spec",
        containers=(list[container], ...),
        nodeSelector=amounts,
        tolerations=(list[toleration], []),
        schedulerName=text,
        priority=(int, 0),
    )
    owner: Any = make("Owner", apiVersion=text, kind=text, name=text, uid=text, controller=(bool, False))
    meta = make(
        "Meta",
        name=text,
        namespace=text,
        uid=text,
        labels=amounts,
        annotations=amounts,
        ownerReferences=(list[owner], []),
    )
    condition: Any = make("Condition", type=text, status=text)
    status = make("Status", phase=text, conditions=(list[condition], []))
    pod: Any = make("Pod", metadata=(meta, ...), spec=(spec, ...), status=(status, ...))
    pods = make("Pods", items=(list[pod], ...))
    reader: Callable[[bytes], object] = pods.model_validate_json
    return reader


def _seconds(action: Callable[[bytes], object], data: bytes) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        action(data)
        best = min(best, time.process_time() - start)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="decoding speed")
    parser.add_argument("--pods", type=int, default=5000)
    pods = parser.parse_args(arguments).pods
    data = fleet(pods)
    ways: list[tuple[str, Callable[[bytes], object]]] = [
        ("shoal: typed, checked, each with its place", read),
        ("the same types, unchecked", _typed),
        ("json.loads: untyped, unchecked", json.loads),
        ("json.loads, then typed", _through_dictionaries),
    ]
    if (pydantic := _pydantic()) is not None:
        ways.append(("pydantic: quantities as text, unchecked", pydantic))
    base = 0.0
    for name, action in ways:
        seconds = _seconds(action, data)
        base = base or seconds
        print(f"{name:42s} {seconds / pods * 1e6:8.1f} us/pod   {seconds / base:5.2f}x")


if __name__ == "__main__":
    main()
