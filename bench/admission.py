"""The latency of the admission webhook: pods of 10 KB, 50 requests a second over TLS, at least 60 rules for each pod.

python -m bench.admission [--seconds N]

The server is a process of its own, as in a cluster; the requests begin at fixed times, whether or not the earlier ones
have been answered. The objects that the rules look up are those of a cluster of 1,000 nodes.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import ssl
import sys
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import aiohttp
import msgspec
from rich.console import Console

from bench.cluster.figures import Figure, table
from shoal.controllers.gatekeeping.rule_policies import RULES_PATH
from shoal.controllers.gatekeeping.webhook_certs import WebhookCerts, machine_date, new_papers
from shoal.controllers.gatekeeping.webhook_server import WebhookServer
from shoal.policy.admission_rules.checks import webhook_checks
from shoal.policy.admission_rules.modes import RuleModes
from shoal.policy.admission_rules.reviews import reviewed
from shoal.policy.catalogue import at_admission, policy_checks
from shoal.policy.kinds import POD
from shoal.policy.object_set import ObjectSet

Obj = dict[str, Any]
_HOST = "127.0.0.1"
_RULES, _RATE, _BYTES, _MOST_MS = 60, 50, 10_000, 5.0
_NODES, _PRODUCTS = 1_000, ("NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
_GPU = "nvidia.com/gpu"


def _node(number: int) -> Obj:
    labels = {f"example.com/label-{each}": f"value-{number}" for each in range(20)}
    labels |= {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": _PRODUCTS[number % 3]}
    taint = {"key": _GPU, "value": "present", "effect": "NoSchedule"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "spec": {"taints": [taint]},
    }


def _lookups() -> ObjectSet:
    meta = {"name": "team", "labels": {}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "team"},
        "spec": {"hard": {f"requests.{_GPU}": "64"}},
    }
    return ObjectSet([namespace, quota, *map(_node, range(_NODES))])


def pod() -> Obj:
    """Has what most rules read, and breaks some of them."""
    env = [{"name": f"SETTING_{number}", "value": "x" * 40} for number in range(60)]
    env.append({"name": "NCCL_DEBUG", "value": "WARN"})
    containers = [
        {
            "name": f"c{number}",
            "image": "registry.example/train:1",
            "command": ["torchrun", "--nnodes=2", "--rdzv-backend=c10d", "train.py", "--out=$(OUTPUT)"],
            "env": env,
            "resources": {"limits": {_GPU: "2", "memory": "8Gi"}, "requests": {_GPU: "2", "memory": "8Gi"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        for number in range(2)
    ]
    spec: Obj = {
        "containers": containers,
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "zone": "a"},
        "tolerations": [{"key": _GPU, "operator": "Exists"}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"}, "spec": spec}


def _review(number: int) -> bytes:
    obj = pod()
    missing = _BYTES - len(msgspec.json.encode(obj))
    obj["metadata"]["annotations"] = {"example.com/notes": "n" * max(missing, 0)}
    request = {"uid": str(number), "kind": {"group": "", "version": "v1", "kind": "Pod"}, "namespace": "team"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    return msgspec.json.encode({**review, "request": {**request, "operation": "CREATE", "object": obj}})


def rules_of_pods() -> int:
    """How many rules of the catalogue are checked for a pod."""
    of_webhook = {reason for each in webhook_checks(POD) for reason in each.reasons if reason in at_admission()}
    return len(policy_checks()) + len(of_webhook)


def _serve(papers: WebhookCerts, rounds: int, told: Connection) -> None:
    context, modes = _lookups(), RuleModes()

    def answer(review: Obj) -> Obj:
        for _ in range(rounds):
            found = reviewed(review, context, modes, has_policies=False)
        return found

    async def run() -> None:
        server = WebhookServer({RULES_PATH: answer})
        server.show(papers)
        await server.start(_HOST, 0)
        told.send(server.port)
        await asyncio.Event().wait()

    asyncio.run(run())


async def _latencies_ms(port: int, trusted: bytes, seconds: float) -> list[float]:
    tls = ssl.create_default_context(cadata=trusted.decode())
    url = f"https://{_HOST}:{port}{RULES_PATH}"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0)) as session:

        async def one(number: int) -> float:
            body = _review(number)
            begun = time.perf_counter()
            async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
                found = msgspec.json.decode(await answer.read())
            taken_ms = (time.perf_counter() - begun) * 1000
            if found["response"]["uid"] != str(number) or not found["response"].get("warnings"):
                raise AssertionError(f"not an answer with warnings: {found}")
            return taken_ms

        await asyncio.gather(*(one(number) for number in range(10)))
        begin = time.perf_counter()
        running = []
        for number in range(int(seconds * _RATE)):
            await asyncio.sleep(begin + number / _RATE - time.perf_counter())
            running.append(asyncio.ensure_future(one(number)))
        return sorted(await asyncio.gather(*running))


def measure(seconds: float) -> list[Figure]:
    rules = rules_of_pods()
    rounds = -(-_RULES // rules)
    papers = new_papers((_HOST,), machine_date())
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=_serve, args=(papers, rounds, theirs), daemon=True)
    server.start()
    try:
        found = asyncio.run(_latencies_ms(ours.recv(), papers.bundle, seconds))
    finally:
        server.kill()
        server.join()
    beside = f"{rules} rules of the catalogue, {rounds} times for each pod; {len(found):,} pods, {_NODES:,} nodes"
    p99 = found[min(int(len(found) * 0.99), len(found) - 1)]
    return [
        Figure(f"webhook, {_RATE} pods of 10 KB a second, median", found[len(found) // 2], " ms"),
        Figure(f"webhook, {_RATE} pods of 10 KB a second, p99", p99, " ms", most=_MOST_MS, beside=beside),
    ]


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args(arguments)
    Console(highlight=False).print(table(measure(options.seconds)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
