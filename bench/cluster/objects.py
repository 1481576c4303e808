"""What the load is made of: GPU nodes of some 5 KB as kubelets report them, training pods, bindings, leases."""

from __future__ import annotations

from typing import Any

import msgspec

from bench.cluster.storm import Ask

NODES = 1_000
NAMESPACE = b"default"
_GPU = "NVIDIA-H100-80GB-HBM3"
_MOMENT = "2026-11-21T10:00:00Z"
_encode = msgspec.json.encode
_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_IMAGES = ("pytorch:24.10-py3", "tritonserver:24.10-py3", "cuda:12.6.2-base", "k8s/dcgm-exporter:3.3.8", "nemo:24.09")


def create_nodes(count: int) -> list[Ask]:
    return [Ask(b"POST", b"/api/v1/nodes", _encode(_node(index))) for index in range(count)]


def open_nodes(count: int) -> list[Ask]:
    """Written once more as they were meant: the server taints nodes that nobody has called ready."""
    return [
        Ask(b"PUT", b"/api/v1/nodes/%s" % _node_name(index).encode(), _encode(_node(index))) for index in range(count)
    ]


def create_pods(first: int, count: int, scheduler: str = "", labels: dict[str, str] | None = None) -> list[Ask]:
    path = b"/api/v1/namespaces/%s/pods" % NAMESPACE
    pods = (_pod(index) for index in range(first, first + count))
    return [Ask(b"POST", path, _encode(_for(pod, scheduler, labels or {}))) for pod in pods]


def _for(pod: dict[str, Any], scheduler: str, labels: dict[str, str]) -> dict[str, Any]:
    pod["metadata"]["labels"] |= labels
    if scheduler:
        pod["spec"]["schedulerName"] = scheduler
    return pod


def delete_pods(count: int) -> list[Ask]:
    """Bound ones too, whose kubelets are not there to end them."""
    path, at_once = b"/api/v1/namespaces/%s/pods/" % NAMESPACE, _encode({"gracePeriodSeconds": 0})
    return [Ask(b"DELETE", path + pod_name(index).encode(), at_once) for index in range(count)]


def delete_nodes(count: int) -> list[Ask]:
    return [Ask(b"DELETE", b"/api/v1/nodes/" + _node_name(index).encode()) for index in range(count)]


def bind_pods(first: int, count: int, nodes: int) -> list[Ask]:
    return [_binding(index, index % nodes) for index in range(first, first + count)]


def pod_name(index: int) -> str:
    return f"train-{index // 8:05d}-worker-{index % 8}"


def lease(node: int, *, renewed: int, version: str = "") -> bytes:
    """`renewed` counts renewals; the lease of a node as its kubelet writes it."""
    name = _node_name(node)
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": f"{node:08d}-0000-4000-8000-000000000000"}
    metadata: dict[str, Any] = {"name": name, "namespace": "kube-node-lease", "ownerReferences": [owner]}
    if version:
        metadata["resourceVersion"] = version
    moment = f"2026-11-21T10:{renewed // 60 % 60:02d}:{renewed % 60:02d}.000000Z"
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": moment}
    return _encode({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


def lease_path(node: int | None = None) -> bytes:
    path = b"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    return path if node is None else b"%s/%s" % (path, _node_name(node).encode())


def _node_name(index: int) -> str:
    return f"gpu-{index // 32:03d}-{index % 32:02d}.dc1.example.com"


def _binding(pod: int, node: int) -> Ask:
    name = pod_name(pod)
    device = f"GPU-{node:08x}-aaaa-bbbb-cccc-{pod % 8:012x}"
    devices = _encode({"pytorch": {"nvidia.com/gpu": [device]}}).decode()
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "annotations": {"shoal.dev/devices": devices}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": _node_name(node)},
    }
    return Ask(b"POST", b"/api/v1/namespaces/%s/pods/%s/binding" % (NAMESPACE, name.encode()), _encode(body))


def _pod(index: int) -> dict[str, Any]:
    job, rank = f"train-{index // 8:05d}", index % 8
    variables = {
        "MASTER_ADDR": f"{job}-worker-0.{job}",
        "MASTER_PORT": "29500",
        "WORLD_SIZE": "8",
        "RANK": str(rank),
        "NCCL_DEBUG": "WARN",
    }
    requests = {"cpu": "12", "memory": "96Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "pytorch",
        "image": "nvcr.io/nvidia/pytorch:24.10-py3",
        "command": ["torchrun", "--nproc-per-node=1", "/workspace/train.py"],
        "args": ["--config", "/etc/train/config.yaml", "--epochs", "90"],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "ports": [{"name": "rendezvous", "containerPort": 29500}],
        "resources": {"requests": requests, "limits": requests},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "scratch", "mountPath": "/scratch"}],
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"nvidia.com/gpu.product": _GPU},
        "volumes": [
            {"name": "data", "hostPath": {"path": "/mnt/data", "type": "Directory"}},
            {"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}},
        ],
    }
    labels = {
        "app.kubernetes.io/name": "train",
        "batch.kubernetes.io/job-name": job,
        "batch.kubernetes.io/job-completion-index": str(rank),
        "team": f"team-{index % 12}",
    }
    metadata = {"name": pod_name(index), "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _node(index: int) -> dict[str, Any]:
    name = _node_name(index)
    room = {
        "cpu": "112",
        "memory": "2113506236Ki",
        "ephemeral-storage": "1843069164Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "0",
        "nvidia.com/gpu": "8",
        "rdma/hca": "8",
        "pods": "250",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _node_labels(index, name), "annotations": _node_annotations(index)},
        "spec": {
            "podCIDR": f"10.{index // 256}.{index % 256}.0/24",
            "providerID": f"bench://dc1/{name}",
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
        },
        "status": {
            "capacity": room,
            "allocatable": room | {"cpu": "110", "memory": "2098000000Ki"},
            "conditions": [_condition(*words) for words in _CONDITIONS],
            "addresses": [
                {"type": "InternalIP", "address": f"192.168.{index // 250}.{index % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _node_info(index),
            "images": [_image(words) for words in _IMAGES],
        },
    }


def _node_labels(index: int, name: str) -> dict[str, str]:
    features = {f"feature.node.kubernetes.io/cpu-cpuid.{flag}": "true" for flag in ("AVX512F", "AMXBF16", "AMXINT8")}
    return features | {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "hgx-h100-8",
        "topology.kubernetes.io/region": "dc1",
        "topology.kubernetes.io/zone": f"dc1-{index % 4}",
        "topology.shoal.dev/block": f"block-{index // 128}",
        "topology.shoal.dev/rack": f"rack-{index // 32}",
        "nvidia.com/cuda.driver-version.full": "565.57.01",
        "nvidia.com/cuda.runtime-version.full": "12.7",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.count": "8",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.machine": "HGX-H100",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": _GPU,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/mig.strategy": "single",
    }


def _node_annotations(index: int) -> dict[str, str]:
    links = [[18 if left != right else 0 for right in range(8)] for left in range(8)]
    return {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
        "shoal.dev/links": _encode(links).decode(),
        "shoal.dev/gpus": ",".join(f"GPU-{index:08x}-aaaa-bbbb-cccc-{gpu:012x}" for gpu in range(8)),
    }


def _condition(kind: str, state: str, reason: str, message: str) -> dict[str, str]:
    times = {"lastHeartbeatTime": _MOMENT, "lastTransitionTime": _MOMENT}
    return {"type": kind, "status": state, "reason": reason, "message": message, **times}


def _node_info(index: int) -> dict[str, str]:
    return {
        "architecture": "amd64",
        "bootID": f"{index:08x}-1111-2222-3333-444444444444",
        "containerRuntimeVersion": "containerd://2.1.4",
        "kernelVersion": "6.8.0-48-generic",
        "kubeProxyVersion": "v1.36.0",
        "kubeletVersion": "v1.36.0",
        "machineID": f"{index:032x}",
        "operatingSystem": "linux",
        "osImage": "Ubuntu 24.04.1 LTS",
        "systemUUID": f"{index:08x}-5555-6666-7777-888888888888",
    }


def _image(words: str) -> dict[str, Any]:
    name = f"nvcr.io/nvidia/{words}"
    digest = f"{len(words):02x}" * 32
    return {"names": [f"{name.partition(':')[0]}@sha256:{digest}", name], "sizeBytes": 9_000_000_000 + len(words)}
