"""A pod is above a limit of ephemeral storage by the kubelet's rules, in its order and with its messages."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.client.kubelet.storage_limits import StorageUse, has_storage_limits, storage_excess

Obj = dict[str, Any]
MIB = 1 << 20


def container(name: str, limit: str | None = None, **more: Any) -> Obj:
    return {"name": name, "resources": {"limits": {"ephemeral-storage": limit} if limit else {}}, **more}


def pod(*containers: Obj, volumes: list[Obj] | None = None, **spec: Any) -> Obj:
    return {"metadata": {"name": "p"}, "spec": {"containers": [*containers], "volumes": volumes or [], **spec}}


def empty(name: str, limit: str, medium: str = "") -> Obj:
    return {"name": name, "emptyDir": {"sizeLimit": limit, **({"medium": medium} if medium else {})}}


def test_an_empty_dir_above_its_size_is_named_with_its_limit() -> None:
    wanted = pod(container("main"), volumes=[empty("cache", "1Mi"), empty("other", "1Gi")])

    message = 'Usage of EmptyDir volume "cache" exceeds the limit "1Mi". '
    assert storage_excess(wanted, StorageUse(empty_dirs={"cache": MIB + 1})) == message
    assert not storage_excess(wanted, StorageUse(empty_dirs={"cache": MIB, "other": MIB + 1}))


def test_a_size_of_zero_is_no_limit() -> None:
    wanted = pod(container("main"), volumes=[empty("cache", "0")])

    assert not has_storage_limits(wanted)
    assert not storage_excess(wanted, StorageUse(empty_dirs={"cache": 1}))


def test_a_container_above_its_limit_is_named() -> None:
    wanted = pod(container("main", "1Mi"), container("side", "1Gi"))

    message = 'Container main exceeded its local ephemeral storage limit "1Mi". '
    assert storage_excess(wanted, StorageUse({"main": MIB + 1, "side": 5})) == message
    assert not storage_excess(wanted, StorageUse({"main": MIB, "side": 5}))


def test_the_pod_is_judged_before_its_containers() -> None:
    wanted = pod(container("main", "1Mi"), container("side", "1Mi"))

    message = "Pod ephemeral local storage usage exceeds the total limit of containers 2Mi. "
    assert storage_excess(wanted, StorageUse({"main": 3 * MIB})) == message


def test_volumes_and_other_files_count_for_the_pod_and_memory_does_not() -> None:
    wanted = pod(container("main", "1Mi"), volumes=[empty("disk", "1Gi"), empty("memory", "1Gi", "Memory")])

    message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "
    assert storage_excess(wanted, StorageUse(empty_dirs={"disk": MIB + 1})) == message
    assert storage_excess(wanted, StorageUse(others=MIB + 1)) == message
    assert not storage_excess(wanted, StorageUse(empty_dirs={"memory": MIB + 1}))


def test_a_container_without_a_limit_counts_as_zero_in_the_sum() -> None:
    wanted = pod(container("main", "1Mi"), container("side"))

    assert "total limit of containers 1Mi" in storage_excess(wanted, StorageUse({"side": MIB + 1}))


@pytest.mark.parametrize(
    ("inits", "overhead", "total"),
    [
        ([container("first", "4Mi")], {}, "4Mi"),
        ([container("first", "1Mi")], {}, "2Mi"),
        ([container("side", "3Mi", restartPolicy="Always")], {}, "5Mi"),
        ([container("side", "3Mi", restartPolicy="Always"), container("then", "4Mi")], {}, "7Mi"),
        ([], {"ephemeral-storage": "1Mi"}, "3Mi"),
        ([], {"cpu": "1"}, "2Mi"),
    ],
)
def test_the_limit_of_a_pod_is_that_of_its_containers_which_run_together(
    inits: list[Obj], overhead: Obj, total: str
) -> None:
    wanted = pod(container("main", "2Mi"), initContainers=inits, overhead=overhead)

    message = f"Pod ephemeral local storage usage exceeds the total limit of containers {total}. "
    assert storage_excess(wanted, StorageUse(others=1 << 40)) == message


def test_only_pods_with_limits_are_measured_and_critical_ones_are_not() -> None:
    limited = pod(container("main", "1Mi"))

    assert has_storage_limits(limited)
    assert has_storage_limits(pod(container("main"), volumes=[empty("cache", "1Mi")]))
    assert has_storage_limits(pod(container("main"), initContainers=[container("first", "1Mi")]))
    assert not has_storage_limits(pod(container("main"), volumes=[{"name": "v", "emptyDir": {}}]))
    assert not has_storage_limits({**limited, "spec": {**limited["spec"], "priority": 2_000_000_000}})
