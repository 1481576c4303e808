"""The kinds Shoal reads as typed values. A new kind is a line here; any other kind is passed on raw."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.api import validity
from shoal.api.disruption import PodDisruptionBudget, PriorityClass
from shoal.api.meta import Namespace
from shoal.api.node import Node
from shoal.api.pod import Pod
from shoal.api.wire import ApiStruct
from shoal.api.workloads import DaemonSet, Job
from shoal.units.errors import Where


@dataclass(frozen=True, slots=True)
class Kind:
    name: str
    api_versions: tuple[str, ...]
    type: type[ApiStruct]
    check: Callable[[Any, Where], None]
    is_namespaced: bool = True


KINDS: tuple[Kind, ...] = (
    Kind("Pod", ("v1",), Pod, validity.check_pod),
    Kind("Node", ("v1",), Node, validity.check_node, is_namespaced=False),
    Kind("Namespace", ("v1",), Namespace, validity.check_namespace, is_namespaced=False),
    Kind("DaemonSet", ("apps/v1",), DaemonSet, validity.check_daemon_set),
    Kind("Job", ("batch/v1",), Job, validity.check_job),
    Kind(
        "PriorityClass",
        ("scheduling.k8s.io/v1", "scheduling.k8s.io/v1beta1"),
        PriorityClass,
        validity.check_priority_class,
        is_namespaced=False,
    ),
    Kind(
        "PodDisruptionBudget",
        ("policy/v1", "policy/v1beta1"),
        PodDisruptionBudget,
        validity.check_disruption_budget,
    ),
)

_BY_NAME = {(version, kind.name): kind for kind in KINDS for version in kind.api_versions}


def find_kind(api_version: str, name: str) -> Kind | None:
    return _BY_NAME.get((api_version, name))
