"""A kubelet's interface for the devices of pods, on a socket of a test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import grpc

from shoal.agent.protos import podresources_pb2 as messages
from shoal.devices.dcgm_holders import ContainerHolding


class PodResourcesServer:
    """It answers with `holdings`, one pod for each."""

    def __init__(self) -> None:
        self.holdings: Sequence[ContainerHolding] = ()
        self.refusal: grpc.StatusCode | None = None
        self.can_answer = Event()
        self.can_answer.set()
        self.calls = 0

    def list(self, _: Any, context: Any) -> messages.ListPodResourcesResponse:
        self.calls += 1
        self.can_answer.wait(60)
        if self.refusal is not None:
            context.abort(self.refusal, "as the test wants it")
        return messages.ListPodResourcesResponse(pod_resources=[_pod(one) for one in self.holdings])

    @contextmanager
    def served(self, socket: Path) -> Iterator[None]:
        handler = grpc.unary_unary_rpc_method_handler(
            self.list,
            request_deserializer=messages.ListPodResourcesRequest.FromString,
            response_serializer=messages.ListPodResourcesResponse.SerializeToString,
        )
        server = grpc.server(ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("v1.PodResourcesLister", {"List": handler})]
        )
        server.add_insecure_port(f"unix:{socket}")
        server.start()
        try:
            yield
        finally:
            self.can_answer.set()
            server.stop(None).wait()


def _pod(one: ContainerHolding) -> messages.PodResources:
    devices = [messages.ContainerDevices(resource_name=one.resource, device_ids=one.device_ids)]
    claims = [
        messages.DynamicResource(
            claim_name=each.claim,
            claim_namespace=each.claim_namespace,
            claim_resources=[
                messages.ClaimResource(driver_name=each.driver, pool_name=each.pool, device_name=each.device)
            ],
        )
        for each in one.claimed
    ]
    container = messages.ContainerResources(
        name=one.container, devices=devices if one.device_ids else [], dynamic_resources=claims
    )
    return messages.PodResources(name=one.pod, namespace=one.namespace, containers=[container])
