"""Who may open a stream into which pod, before anything is streamed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request

from build.rbac import actor, cluster_binding, cluster_role
from build.readers import FixedReader
from shoal.client.certificates import Pair
from shoal.embedded.apiserver.calls import ANONYMOUS, Actor
from shoal.embedded.apiserver.security.authorize import AllowRecognised, Authorizer
from shoal.embedded.apiserver.security.rbac import Rbac
from shoal.embedded.apiserver.status import ApiError
from shoal.embedded.apiserver.streams.kubelet_routes import conversations
from shoal.embedded.apiserver.streams.kubelets import Kubelets
from shoal.embedded.apiserver.streams.terminal import CannedTerminal

REFUSED = ("attach", "portforward", "proxy")
BOB = actor("bob")
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "ns"},
    "spec": {"nodeName": "n1", "containers": [{"name": "main"}]},
}


class Address(msgspec.Struct, frozen=True):
    namespace: str
    name: str
    rest: str = ""


async def refusal(subresource: str, name: str, by: Actor, authorizer: Authorizer) -> ApiError:
    doors = conversations(FixedReader(POD), authorizer, CannedTerminal(), Kubelets(Pair(b"", b"")))
    request = make_mocked_request("GET", "/?command=env&stdout=true")
    with pytest.raises(ApiError) as caught:
        await doors["", "pods", subresource](request, Address("ns", name), None, by)
    return caught.value


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward"])
async def test_a_right_to_read_is_none_to_open_a_stream(subresource: str) -> None:
    role = cluster_role("r", f"get pods,pods/{subresource}")
    rbac = Rbac(FixedReader(role, cluster_binding("r", "User bob")))
    error = await refusal(subresource, "p", BOB, rbac)
    assert error.message == (
        f'pods "p" is forbidden: User "bob" cannot create resource "pods/{subresource}" in API group "" '
        'in the namespace "ns"'
    )
    assert (await refusal(subresource, "p", ANONYMOUS, AllowRecognised())).code == 401


async def test_whoever_may_gets_as_far_as_the_upgrade() -> None:
    rbac = Rbac(FixedReader(cluster_role("r", "create pods/exec"), cluster_binding("r", "User bob")))
    assert (await refusal("exec", "p", BOB, rbac)).message == "Upgrade request required"


@pytest.mark.parametrize("subresource", ["exec", *REFUSED])
async def test_a_pod_that_is_not_there_is_not_found(subresource: str) -> None:
    error = await refusal(subresource, "gone", BOB, AllowRecognised())
    assert (error.code, error.message) == (404, 'pods "gone" not found')


@pytest.mark.parametrize("subresource", REFUSED)
async def test_streams_that_need_a_process_are_refused(subresource: str) -> None:
    error = await refusal(subresource, "p", BOB, AllowRecognised())
    assert (error.code, error.message.startswith(f"{subresource} is not possible here")) == (400, True)
