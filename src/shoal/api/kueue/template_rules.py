"""Checks the pod template of a Workload as Kueue does, which is less strict than the API server's check of a pod.

A template is no pod yet. Limits that are missing or too low, half a device, a LimitRange broken: such a Workload exists
and waits, and the engine says why. Refused is only what has no meaning: amounts below zero, selectors that are none.
"""

from __future__ import annotations

from shoal.api.kueue.amounts import check_bound
from shoal.api.node_affinity import check_node_selector
from shoal.api.pod import PodSpec
from shoal.api.resources import PODS
from shoal.api.wire import Quantities
from shoal.units.errors import UserError, Where


def check_template(spec: PodSpec, where: Where) -> None:
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for index, container in enumerate(containers):
            here = where.below(f"{field}[{index}].resources")
            _check_amounts(container.resources.requests, here.below("requests"))
            _check_amounts(container.resources.limits, here.below("limits"))
    if spec.resources is not None:
        _check_amounts(spec.resources.requests, where.below("resources.requests"))
        _check_amounts(spec.resources.limits, where.below("resources.limits"))
    _check_amounts(spec.overhead, where.below("overhead"))
    if spec.node_selector:
        check_node_selector(spec.node_selector, where.below("nodeSelector"))
    if spec.affinity is not None:
        spec.affinity.check(where.below("affinity"))
    for index, toleration in enumerate(spec.tolerations):
        toleration.check(where.below(f"tolerations[{index}]"))


def _check_amounts(quantities: Quantities, where: Where) -> None:
    if PODS in quantities:
        raise UserError("cannot be asked for: pods are counted", where=where.key(PODS), fix="leave it out")
    for name, quantity in quantities.items():
        check_bound(name, quantity, where.key(name))
