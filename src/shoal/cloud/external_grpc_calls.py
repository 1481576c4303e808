"""Calls an external gRPC provider of Cluster Autoscaler. Errors of the transport become those of the port."""

from __future__ import annotations

from typing import Final, NoReturn, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from shoal.cloud.external_grpc_settings import ExternalGrpcSettings
from shoal.cloud.port import ThrottledError
from shoal.cloud.protos import externalgrpc_pb2 as pb
from shoal.units.errors import ShoalError, TemporaryError, UserError
from shoal.units.visible_text import visible

_SERVICE: Final = "/clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider/"
_TIMEOUT_S: Final = 60.0
_LONGEST: Final = 16 << 20
_RETRY_S, _SLOWER_S = 2.0, 5.0
_UNKNOWN_RESULT: Final = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
_DENIED: Final = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
T = TypeVar("T", bound=Message)


class RefusedByProviderError(ShoalError):
    """The provider has answered that it does not do this."""


class ExternalGrpcCalls:
    def __init__(self, settings: ExternalGrpcSettings) -> None:
        options = [
            ("grpc.enable_http_proxy", 0),
            ("grpc.service_config_disable_resolution", 1),
            ("grpc.max_receive_message_length", _LONGEST),
        ]
        if settings.ca:
            credentials = grpc.ssl_channel_credentials(settings.ca, settings.key or None, settings.cert or None)
            self._channel = grpc.aio.secure_channel(settings.address, credentials, options)
        else:
            self._channel = grpc.aio.insecure_channel(settings.address, options)
        self._address = settings.address

    async def close(self) -> None:
        await self._channel.close(None)

    async def refresh(self) -> None:
        await self._call("Refresh", pb.RefreshRequest(), pb.RefreshResponse)

    async def groups(self) -> list[pb.NodeGroup]:
        answer = await self._call("NodeGroups", pb.NodeGroupsRequest(), pb.NodeGroupsResponse)
        return sorted(answer.nodeGroups, key=lambda each: str(each.id))

    async def target_size(self, group: str) -> int:
        request = pb.NodeGroupTargetSizeRequest(id=group)
        answer = await self._call("NodeGroupTargetSize", request, pb.NodeGroupTargetSizeResponse)
        return int(answer.targetSize)

    async def instances(self, group: str) -> list[pb.Instance]:
        answer = await self._call("NodeGroupNodes", pb.NodeGroupNodesRequest(id=group), pb.NodeGroupNodesResponse)
        return list(answer.instances)

    async def increase(self, group: str, count: int) -> None:
        request = pb.NodeGroupIncreaseSizeRequest(id=group, delta=count)
        await self._call("NodeGroupIncreaseSize", request, pb.NodeGroupIncreaseSizeResponse)

    async def decrease(self, group: str, count: int) -> None:
        """Of machines that do not exist yet."""
        request = pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=-count)
        await self._call("NodeGroupDecreaseTargetSize", request, pb.NodeGroupDecreaseTargetSizeResponse)

    async def delete(self, group: str, instances: list[str]) -> None:
        nodes = [pb.ExternalGrpcNode(providerID=each) for each in instances]
        request = pb.NodeGroupDeleteNodesRequest(id=group, nodes=nodes)
        await self._call("NodeGroupDeleteNodes", request, pb.NodeGroupDeleteNodesResponse)

    async def template(self, group: str) -> bytes | None:
        """A Node of the group as Kubernetes encodes it; None if the provider describes none."""
        request = pb.NodeGroupTemplateNodeInfoRequest(id=group)
        answer = await self._optional("NodeGroupTemplateNodeInfo", request, pb.NodeGroupTemplateNodeInfoResponse)
        return None if answer is None else (answer.nodeBytes or answer.nodeInfo or None)

    async def hourly_price(self, labels: dict[str, str], now_s: float) -> float | None:
        """None if the provider has no prices."""
        start, end = Timestamp(seconds=int(now_s)), Timestamp(seconds=int(now_s) + 3600)
        node = pb.ExternalGrpcNode(labels=labels)
        request = pb.PricingNodePriceRequest(node=node, startTimestamp=start, endTimestamp=end)
        answer = await self._optional("PricingNodePrice", request, pb.PricingNodePriceResponse)
        return None if answer is None else float(answer.price)

    async def _optional(self, method: str, request: Message, answer: type[T]) -> T | None:
        try:
            return await self._asked(method, request, answer)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                return None
            self._fail(method, error)

    async def _call(self, method: str, request: Message, answer: type[T]) -> T:
        try:
            return await self._asked(method, request, answer)
        except grpc.aio.AioRpcError as error:
            self._fail(method, error)

    async def _asked(self, method: str, request: Message, answer: type[T]) -> T:
        call = self._channel.unary_unary(
            _SERVICE + method,
            request_serializer=type(request).SerializeToString,
            response_deserializer=answer.FromString,
        )
        found: T = await call(request, timeout=_TIMEOUT_S)
        return found

    def _fail(self, method: str, error: grpc.aio.AioRpcError) -> NoReturn:
        words = (
            f"the provider at {self._address}: {method}: {error.code().name}: {visible(error.details() or '')[:500]}"
        )
        if error.code() in _UNKNOWN_RESULT:
            raise TemporaryError(words, _RETRY_S) from None
        if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and method != "NodeGroupIncreaseSize":
            raise ThrottledError(words, _SLOWER_S) from None
        if error.code() in _DENIED:
            raise UserError(words, fix="check key, cert and cacert in the file of --cloud-config") from None
        raise RefusedByProviderError(words) from None
