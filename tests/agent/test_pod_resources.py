"""The kubelet's answer over its socket becomes the devices of containers; a failure names the socket."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from build.pod_resources_server import PodResourcesServer
from shoal.agent.kubelet.pod_resources import KubeletPodDevices
from shoal.devices.dcgm_holders import ClaimedDevice, ContainerHolding
from shoal.units.errors import TemporaryError

HOLDINGS = (
    ContainerHolding("train-0", "team", "main", "nvidia.com/gpu", ("GPU-a", "GPU-b")),
    ContainerHolding("serve-0", "team", "main", "nvidia.com/mig-1g.10gb", ("MIG-c::1",)),
    ContainerHolding(
        "claim-0", "team", "main", claimed=(ClaimedDevice("claim", "team", "gpu.nvidia.com", "pool", "gpu-0"),)
    ),
)


@pytest.fixture(name="socket")
def socket_fixture(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


def test_devices_and_claims_of_containers_are_read(socket: Path) -> None:
    kubelet = PodResourcesServer()
    kubelet.holdings = HOLDINGS
    with kubelet.served(socket):
        found = KubeletPodDevices(socket)
        assert found.holdings() == list(HOLDINGS)
        found.close()


def test_a_kubelet_that_starts_again_is_asked_again(socket: Path) -> None:
    found = KubeletPodDevices(socket)
    for holdings in (HOLDINGS[:1], HOLDINGS[1:]):
        kubelet = PodResourcesServer()
        kubelet.holdings = holdings
        with kubelet.served(socket):
            assert found.holdings() == list(holdings)
        with pytest.raises(TemporaryError):
            found.holdings()
    found.close()


@pytest.mark.parametrize("code", [grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNIMPLEMENTED])
def test_a_refusal_is_a_temporary_error_with_the_words_of_the_kubelet(socket: Path, code: grpc.StatusCode) -> None:
    kubelet = PodResourcesServer()
    kubelet.refusal = code
    with kubelet.served(socket), pytest.raises(TemporaryError) as refused:
        KubeletPodDevices(socket).holdings()
    assert f"{socket}: the kubelet does not list the devices of pods: {code.name}" in str(refused.value)
    assert "as the test wants it" in str(refused.value)


def test_a_kubelet_that_does_not_answer_is_given_up_after_the_deadline(socket: Path) -> None:
    kubelet = PodResourcesServer()
    kubelet.can_answer.clear()
    with kubelet.served(socket), pytest.raises(TemporaryError, match="DEADLINE_EXCEEDED"):
        KubeletPodDevices(socket, deadline_s=0.05).holdings()


def test_a_socket_that_does_not_exist_is_a_temporary_error(socket: Path) -> None:
    with pytest.raises(TemporaryError, match="there is no such socket"):
        KubeletPodDevices(socket).holdings()
