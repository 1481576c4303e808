"""The loads of `bench.attacks`: costly but valid requests, and pods whose scheduling is costly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

Obj = dict[str, Any]
PODS = "/api/v1/namespaces/{}/pods"
_MAPS = "/api/v1/namespaces/a/configmaps"
_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_DRY = "?dryRun=All"


class Costly(NamedTuple):
    """One request."""

    name: str
    method: str
    path: str
    body: Obj | list[Obj] | str
    media: str = _JSON


def pod(name: str, namespace: str, annotations: Obj | None = None, labels: Obj | None = None, **spec: Any) -> Obj:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations or {}, "labels": labels or {}}
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1m"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **spec}}


def _config(name: str, **more: Any) -> Obj:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **more}


def costly_requests(scale: int) -> Iterator[Costly]:
    """At a scale of 100 each body is just below the limit of 3 MiB or of what is stored."""
    many = 600 * scale
    env = pod("p", "a")
    env["spec"]["containers"][0]["env"] = [{"name": f"e{place}", "value": "v"} for place in range(many)]
    yield Costly(f"pod with {many:,} env", "POST", PODS.format("a") + _DRY, env)
    nested = [
        {
            "name": f"c{one}",
            "image": "x",
            "env": [{"name": f"e{place}", "value": f"$(e{place - 1})"} for place in range(10)],
        }
        for one in range(25 * scale)
    ]
    yield Costly(
        f"pod with {25 * scale:,} containers", "POST", PODS.format("a") + _DRY, pod("p", "a", containers=nested)
    )
    tolerations = [{"key": f"k{place}", "operator": "Exists"} for place in range(500 * scale)]
    yield Costly(
        f"pod with {500 * scale:,} tolerations", "POST", PODS.format("a") + _DRY, pod("p", "a", tolerations=tolerations)
    )
    applied = _config("m", data={f"k{place}": "v" for place in range(500 * scale)})
    for manager in ("one", "two"):
        path = f"{_MAPS}/m?fieldManager={manager}&force=true"
        yield Costly(f"apply of {500 * scale:,} keys by {manager}", "PATCH", path, applied, _APPLY)
    finalizers = [f"a.b/f{place}" for place in range(many)]
    yield Costly(f"{many:,} finalizers", "POST", _MAPS + _DRY, _config("f", metadata={"finalizers": finalizers}))
    owners = [
        {"apiVersion": "v1", "kind": "Pod", "name": f"x{place}", "uid": f"{place}"} for place in range(300 * scale)
    ]
    yield Costly(f"{300 * scale:,} owners", "POST", _MAPS + _DRY, _config("o", metadata={"ownerReferences": owners}))
    wrong = {f"k/{place}": "v" for place in range(900 * scale)}
    yield Costly(f"{900 * scale:,} refused keys", "POST", _MAPS + _DRY, _config("w", data=wrong))
    values = [f"v{place}" for place in range(2000 * scale)]
    chosen = {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": values}]}}
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "n"}, "spec": chosen}
    path = "/apis/networking.k8s.io/v1/namespaces/a/networkpolicies"
    yield Costly(f"policy of {2000 * scale:,} values", "POST", path + _DRY, policy)
    yield Costly(
        f"a list of {14_900 * scale:,} in YAML", "POST", _MAPS, f"a: [{'1,' * (14_900 * scale)}]", "application/yaml"
    )
    yield Costly("the large object", "POST", _MAPS, _config("big", data={"a": "x" * 9_000 * scale}))
    inserts: list[Obj] = [{"op": "add", "path": "/x", "value": [0] * 10_000 * scale}]
    inserts += [{"op": "add", "path": "/x/0", "value": 1}] * 90 * scale
    yield Costly("patch that inserts", "PATCH", f"{_MAPS}/big", inserts, "application/json-patch+json")
    copies: list[Obj] = [{"op": "add", "path": "/x", "value": [[0] * 10 * scale]}]
    copies += [{"op": "copy", "from": "/x/0", "path": "/x/1"}] * 13 * scale
    yield Costly("patch that copies", "PATCH", f"{_MAPS}/big", copies, "application/json-patch+json")
    yield Costly("list of the large object", "GET", _MAPS, "")


_ODD = ("NaN", "1e30", "-1", "9" * 5000, "", "0x1", "1/0", "null", "[]", "{" * 500)
_READ = (
    "gpu-fraction",
    "gpu-memory",
    "shoal.dev/devices",
    "shoal.dev/gang",
    "shoal.dev/checkpoint-every",
    "shoal.dev/preemptible",
    "kueue.x-k8s.io/podset-required-topology",
    "scheduling.volcano.sh/group-min-member",
)


def _distinct(number: int) -> Obj:
    made = pod(f"p{number}", "a")
    requests = {"cpu": f"{1_000_000 + number}m", "memory": f"{number + 1}Mi"}
    made["spec"]["containers"][0]["resources"] = {"requests": requests}
    return made


def _tolerant(number: int) -> Obj:
    tolerations = [{"key": f"t{number}-{place}", "operator": "Exists"} for place in range(50)]
    labels = {f"l{number}-{place}": "x" for place in range(20)}
    return pod(f"p{number}", "a", labels=labels, nodeSelector={f"k{number}": "v"}, tolerations=tolerations)


def _repelled(number: int) -> Obj:
    terms = [
        {"labelSelector": {"matchLabels": {f"x{number}": f"{place}"}}, "topologyKey": f"top{number}-{place}"}
        for place in range(40)
    ]
    return pod(
        f"p{number}", "a", affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    )


def _drawn(number: int) -> Obj:
    terms = [
        {
            "weight": 1 + place,
            "preference": {
                "matchExpressions": [
                    {"key": f"p{number}-{place}", "operator": "In", "values": [f"{one}" for one in range(20)]}
                ]
            },
        }
        for place in range(100)
    ]
    return pod(f"p{number}", "a", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}})


def _odd(number: int) -> Obj:
    made = pod(f"p{number}", "a", {name: _ODD[number % len(_ODD)] for name in _READ})
    made["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    return made


def _gang(number: int) -> Obj:
    return pod(
        f"p{number}",
        "a",
        {"shoal.dev/gang": "1e30" if number % 2 else "-5", "pod-group.scheduling.sigs.k8s.io/name": f"g{number}"},
        {"kueue.x-k8s.io/pod-group-name": f"q{number}", "scheduling.x-k8s.io/pod-group": f"z{number % 3}"},
    )


POD_FLOODS: dict[str, Callable[[int], Obj]] = {
    "small pods": lambda number: pod(f"p{number}", "a"),
    "pods with plain annotations of 250 KB": lambda number: pod(f"p{number}", "a", {"y": "0," * 125_000}),
    "pods with shoal.dev/devices of 200 KB": lambda number: pod(
        f"p{number}", "a", {"shoal.dev/devices": "0," * 100_000}
    ),
    "pods with distinct requests that fit nowhere": _distinct,
    "pods with distinct labels and 50 tolerations": _tolerant,
    "pods with 40 anti-affinity terms": _repelled,
    "pods with 100 preferred terms": _drawn,
    "pods with odd annotations": _odd,
    "pods of contradictory gangs": _gang,
}
