"""Reports the usage of a node and its pods as kubelets do: `/pods` and `/stats/summary`."""

from __future__ import annotations

from datetime import UTC, datetime

from shoal.embedded.kubelets.node_view import NodeView, Obj, Usage


def pod_list(node: NodeView) -> Obj:
    """The running pods."""
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [pod for pod, _ in node.pod_usage()]}


def stats_summary(node: NodeView, now_s: float) -> Obj:
    now = rfc3339(now_s)
    pods = [_pod(pod, used, now) for pod, used in node.pod_usage()]
    return {"node": {"nodeName": node.name, **_figures(node.usage(), now)}, "pods": pods}


def _pod(pod: Obj, used: dict[str, Usage], now: str) -> Obj:
    metadata = pod["metadata"]
    measured = [one.cpu_s for one in used.values() if one.cpu_s is not None]
    total = Usage(
        sum(one.cpu_milli for one in used.values()),
        sum(one.memory_bytes for one in used.values()),
        sum(measured) if measured else None,
    )
    return {
        "podRef": {key: metadata.get(key, "") for key in ("name", "namespace", "uid")},
        "startTime": (pod.get("status") or {}).get("startTime"),
        "containers": [{"name": name, **_figures(one, now)} for name, one in used.items()],
        **_figures(total, now),
    }


def _figures(used: Usage, now: str) -> Obj:
    bytes_ = used.memory_bytes
    cpu: Obj = {"time": now, "usageNanoCores": used.cpu_milli * 1_000_000}
    if used.cpu_s is not None:
        cpu["usageCoreNanoSeconds"] = int(used.cpu_s * 1_000_000_000)
        return {"cpu": cpu, "memory": {"time": now, "workingSetBytes": bytes_}}
    return {
        "cpu": cpu,
        "memory": {"time": now, "usageBytes": bytes_, "workingSetBytes": bytes_, "rssBytes": bytes_},
    }


def rfc3339(at_s: float) -> str:
    return datetime.fromtimestamp(int(at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
