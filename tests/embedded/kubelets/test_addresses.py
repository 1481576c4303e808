"""Addresses of simulated nodes and pods: of a range that leads nowhere, with one owner each, and given again."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from build.fleets import FleetRun, fleet_cluster, machine, pod
from build.virtual_time import virtual
from shoal.client.item import Obj
from shoal.client.kind import NODES, PODS
from shoal.embedded.kubelets.addresses import NETWORK, SIZE, Addresses

SMALL = IPv4Network("198.18.0.0/28")


def test_nodes_and_pods_begin_at_different_places() -> None:
    addresses = Addresses()
    assert [addresses.take_for_node(name) for name in ("a", "b")] == ["198.18.0.1", "198.18.0.2"]
    assert [addresses.take(uid) for uid in ("u1", "u2")] == ["198.18.64.1", "198.18.64.2"]


def test_an_address_comes_back_only_after_all_others_had_their_turn() -> None:
    addresses = Addresses(SMALL)
    first = addresses.take("first")
    addresses.give(first, "first")
    later = {addresses.take(str(number)) for number in range(13)}
    assert first not in later
    assert len(later) == 13
    assert addresses.take("again") == first


def test_when_all_are_in_use_there_is_none_until_one_is_given_back() -> None:
    addresses = Addresses(SMALL)
    taken = [addresses.take(str(number)) for number in range(14)]
    assert sorted(map(IPv4Address, taken)) == list(SMALL.hosts())
    assert addresses.take("late") == addresses.take_for_node("late") == ""
    addresses.give(taken[7], "another owner")
    assert addresses.take("late") == ""
    addresses.give(taken[7], "7")
    assert addresses.take("late") == taken[7]


def test_an_address_of_another_network_is_nobodys() -> None:
    addresses = Addresses()
    for odd in ("10.128.0.1", "198.20.0.1", "198.18.0.0", "198.19.255.255", "fd00::1", "", "x"):
        assert not addresses.claim(odd, "u")
        addresses.give(odd, "u")


_STEPS = st.lists(st.tuples(st.sampled_from(["take", "node", "give", "claim", "jump"]), st.integers(0, 9)), max_size=60)


@given(_STEPS)
@settings(max_examples=60)
def test_no_two_owners_ever_have_one_address(steps: list[tuple[str, int]]) -> None:
    addresses, held = Addresses(SMALL), dict[str, str]()
    for what, number in steps:
        owner = f"{what}-{number}"
        if what == "give" and held:
            chosen = sorted(held)[number % len(held)]
            addresses.give(held.pop(chosen), chosen)
        elif what == "claim" and addresses.claim(address := f"198.18.0.{number + 1}", owner):
            held[owner] = address
        elif what == "jump":
            addresses.start_at(number)
        elif what in ("take", "node") and owner not in held:
            taken = addresses.take(owner) if what == "take" else addresses.take_for_node(owner)
            if taken:
                held[owner] = taken
        assert len(set(held.values())) == len(held)


def ip_of(pod_: Obj) -> str:
    return str(pod_["status"].get("podIP", ""))


async def node_ip(run: FleetRun, name: str = "node-0") -> str:
    addresses = (await run.cluster.get(NODES, name))["status"]["addresses"]
    return str(next(one["address"] for one in addresses if one["type"] == "InternalIP"))


@virtual
async def test_pods_have_addresses_of_their_own_and_pods_of_the_host_that_of_the_node(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine("node-0"), machine("node-1")) as run:
        for name, node, host in (("a", "node-0", False), ("b", "node-1", False), ("h", "node-1", True)):
            await run.cluster.create(PODS, pod(name, node, hostNetwork=host))
        found = [await run.until_phase(name, "Running") for name in ("a", "b", "h")]
        assert [ip_of(one) for one in found] == ["198.18.64.1", "198.18.64.2", "198.18.0.2"]
        assert [one["status"]["hostIP"] for one in found] == ["198.18.0.1", "198.18.0.2", "198.18.0.2"]
        assert [await node_ip(run, name) for name in ("node-0", "node-1")] == ["198.18.0.1", "198.18.0.2"]


async def as_earlier_versions_did(run: FleetRun, name: str, ip: str, host_ip: str = "10.0.0.10") -> None:
    status = {"podIP": ip, "podIPs": [{"ip": ip}], "hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    await run.cluster.patch(PODS, name, {"status": status}, "status")


async def until_ip(run: FleetRun, name: str, ip: str) -> Obj:
    async def is_so() -> bool:
        return ip_of(await run.cluster.get(PODS, name)) == ip

    await run.cluster.until(is_so, 60.0)
    return await run.cluster.get(PODS, name)


@virtual
async def test_running_pods_and_nodes_of_an_earlier_version_get_new_addresses_and_run_on(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        for name in ("a", "b"):
            await run.cluster.create(PODS, pod(name))
        await run.cluster.create(PODS, pod("h", hostNetwork=True))
        before = [await run.until_phase(name, "Running") for name in ("a", "b", "h")]
        await run.kill()
        old = [{"type": "InternalIP", "address": "10.0.0.10"}, {"type": "Hostname", "address": "node-0"}]
        await run.cluster.patch(NODES, "node-0", {"status": {"addresses": old}}, "status")
        for name, ip in (("a", "10.128.0.1"), ("b", "10.128.0.2"), ("h", "10.0.0.10")):
            await as_earlier_versions_did(run, name, ip)
        run.start()
        after = [
            await until_ip(run, name, ip)
            for name, ip in (("a", "198.18.64.1"), ("b", "198.18.64.2"), ("h", "198.18.0.1"))
        ]
        assert await node_ip(run) == "198.18.0.1"
        for old_pod, new_pod in zip(before, after, strict=True):
            assert new_pod["status"]["podIPs"] == [{"ip": ip_of(new_pod)}]
            assert new_pod["status"]["hostIPs"] == [{"ip": "198.18.0.1"}]
            assert new_pod["status"]["containerStatuses"] == old_pod["status"]["containerStatuses"]


@virtual
async def test_of_two_running_pods_with_one_address_the_second_gets_another(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        for name in ("a", "b"):
            await run.cluster.create(PODS, pod(name))
            await run.until_phase(name, "Running")
        await run.kill()
        await as_earlier_versions_did(run, "b", "198.18.64.1", "198.18.0.1")
        run.start()

        async def is_so() -> bool:
            return ip_of(await run.cluster.get(PODS, "a")) != ip_of(await run.cluster.get(PODS, "b"))

        await run.cluster.until(is_so, 60.0)


@virtual
async def test_nodes_and_pods_keep_their_addresses_over_a_restart_with_other_nodes(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path, machine("node-1")) as run:
        await run.cluster.create(PODS, pod("a", "node-1"))
        before = await run.until_phase("a", "Running")
        await run.kill()
        run._machines = (machine("node-0"), machine("node-1"))
        run.start()
        await run.cluster.create(PODS, pod("b", "node-0"))
        later = await run.until_phase("b", "Running")
        assert [await node_ip(run, name) for name in ("node-0", "node-1")] == ["198.18.0.2", "198.18.0.1"]
        assert ip_of(await run.cluster.get(PODS, "a")) == ip_of(before) != ip_of(later)


@virtual
async def test_a_pod_without_an_address_waits_and_an_event_says_why(tmp_path: Path) -> None:
    async with fleet_cluster(tmp_path) as run:
        await run.cluster.create(PODS, pod("first"))
        await run.until_phase("first", "Running")
        addresses = run.fleet._fleet_context.addresses
        addresses._owners = {int(NETWORK.network_address) + at: "somebody" for at in range(1, SIZE + 1)}
        await run.cluster.create(PODS, pod())
        await run.cluster.pass_time(5)
        waiting = await run.cluster.get(PODS, "pod")
        assert (waiting["status"]["phase"], ip_of(waiting)) == ("Pending", "")
        (event,) = [one for one in await run.cluster.events("pod") if one["reason"] == "FailedCreatePodSandBox"]
        assert event["message"].endswith("all 131070 of 198.18.0.0/15 are in use by nodes and pods of this cluster")
        addresses.give("198.18.64.9", "somebody")
        assert ip_of(await run.until_phase("pod", "Running")) == "198.18.64.9"
