"""An external gRPC provider of Cluster Autoscaler, in this process; its machines come when a test lets them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import Message

from shoal.cloud.protos import externalgrpc_pb2 as pb

_SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
NODE_LABELS = {
    "node.kubernetes.io/instance-type": "p5.48xlarge",
    "topology.kubernetes.io/zone": "zone-a",
}


@dataclass
class ProviderGroup:
    most: int = 10
    target: int = 0
    labels: Mapping[str, str] = field(default_factory=lambda: dict(NODE_LABELS))
    instances: dict[str, pb.Instance] = field(default_factory=dict)
    made: int = 0


class Provider:
    def __init__(self) -> None:
        self.groups = {
            "first": ProviderGroup(),
            "second": ProviderGroup(most=3, labels={**NODE_LABELS, "topology.kubernetes.io/zone": "zone-b"}),
        }
        self.acts_at_once = True
        self.has_prices = self.has_templates = True
        self.refuses_to_increase = False
        self.loses_answers_of = ""
        self.drops_requests_of = ""
        self.refuses = ""
        self.late: list[tuple[str, int]] | None = None
        """Increases that are carried out after their answer is lost, if it is a list."""
        self.lists_deleted = False
        """Deleted instances stay listed as running, and each request lowers the target."""
        self.price = 98.32
        self.fails_instances = False
        self.taints = b""
        self.requests: list[str] = []

    def act(self) -> None:
        """Brings each group to its target."""
        for id_, group in self.groups.items():
            while len(group.instances) < group.target:
                group.made += 1
                name = f"test:///{id_}-{group.made:03}"
                status = pb.InstanceStatus(instanceState=pb.InstanceStatus.instanceRunning)
                if self.fails_instances:
                    status.instanceState = pb.InstanceStatus.instanceCreating
                    status.errorInfo.errorCode = "QUOTA_EXCEEDED"
                group.instances[name] = pb.Instance(id=name, status=status)

    def answer(self, method: str, request: Any) -> Message:
        match method:
            case "NodeGroups":
                listed = [pb.NodeGroup(id=id_, maxSize=group.most) for id_, group in self.groups.items()]
                return pb.NodeGroupsResponse(nodeGroups=listed)
            case "NodeGroupTargetSize":
                return pb.NodeGroupTargetSizeResponse(targetSize=self.groups[request.id].target)
            case "NodeGroupNodes":
                return pb.NodeGroupNodesResponse(instances=self.groups[request.id].instances.values())
            case "NodeGroupIncreaseSize":
                if self.refuses_to_increase:
                    raise _RefusalError(grpc.StatusCode.UNKNOWN, "no more machines")
                if self.late is not None:
                    self.late.append((request.id, request.delta))
                    raise _RefusalError(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer")
                self.groups[request.id].target += request.delta
                return pb.NodeGroupIncreaseSizeResponse()
            case "NodeGroupDecreaseTargetSize":
                group = self.groups[request.id]
                assert group.target + request.delta >= len(group.instances), "existing machines would be deleted"
                group.target += request.delta
                return pb.NodeGroupDecreaseTargetSizeResponse()
            case "NodeGroupDeleteNodes":
                group = self.groups[request.id]
                for node in request.nodes:
                    if not self.lists_deleted:
                        del group.instances[node.providerID]
                    group.target -= 1
                return pb.NodeGroupDeleteNodesResponse()
            case "NodeGroupTemplateNodeInfo" if self.has_templates:
                return pb.NodeGroupTemplateNodeInfoResponse(nodeBytes=self._node(self.groups[request.id]))
            case "PricingNodePrice" if self.has_prices:
                return pb.PricingNodePriceResponse(price=self.price)
            case "Refresh":
                return pb.RefreshResponse()
        raise _RefusalError(grpc.StatusCode.UNIMPLEMENTED, "not implemented")

    def answered(self, method: str, request: Any) -> Message:
        is_of_unknown_group = isinstance(getattr(request, "id", None), str) and request.id not in self.groups
        if method == self.refuses or is_of_unknown_group:
            raise _RefusalError(grpc.StatusCode.UNKNOWN, f"{method} is refused")
        return self.answer(method, request)

    def _node(self, group: ProviderGroup) -> bytes:
        """A Node in the encoding of Kubernetes."""
        metadata = b"".join(_field(11, _entry(key, value.encode())) for key, value in group.labels.items())
        amounts = {"cpu": "192", "memory": "2Ti", "pods": "110", "nvidia.com/gpu": "8"}
        capacity = b"".join(_field(1, _entry(key, _field(1, value.encode()))) for key, value in amounts.items())
        return _field(1, metadata) + _field(2, self.taints) + _field(3, capacity)


class _RefusalError(Exception):
    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code, self.words = code, words


@asynccontextmanager
async def served(provider: Provider) -> AsyncIterator[str]:
    """The address of the provider."""
    server = grpc.aio.server()
    handlers = {}
    for name, message in pb.DESCRIPTOR.services_by_name["CloudProvider"].methods_by_name.items():
        request = getattr(pb, message.input_type.name)
        handlers[name] = grpc.unary_unary_rpc_method_handler(
            _handler(provider, name), request.FromString, lambda answer: answer.SerializeToString()
        )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


def _handler(provider: Provider, name: str) -> Callable[[Message, grpc.aio.ServicerContext[Any, Any]], Any]:
    async def handle(request: Message, context: grpc.aio.ServicerContext[Any, Any]) -> Message:
        provider.requests.append(name)
        if provider.drops_requests_of == name:
            provider.drops_requests_of = ""
            await context.abort(grpc.StatusCode.UNAVAILABLE, "no connection")
        try:
            answer = provider.answered(name, request)
        except _RefusalError as refusal:
            await context.abort(refusal.code, refusal.words)
        if provider.acts_at_once:
            provider.act()
        if provider.loses_answers_of == name:
            provider.loses_answers_of = ""
            await context.abort(grpc.StatusCode.UNAVAILABLE, "connection lost")
        return answer

    return handle


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _entry(key: str, value: bytes) -> bytes:
    return _field(1, key.encode()) + _field(2, value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
