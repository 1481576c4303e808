"""Computes the pod templates of SparkApplications from Spark's fields: cores, memory and its overhead, GPUs."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec import field

from shoal.api.decode import convert
from shoal.api.wire import ApiStruct
from shoal.store.queues.job_parts.part import Obj, ObjectLookup, PodPart, Replicas
from shoal.units.errors import UserError, Where, excerpt

DRIVER, EXECUTOR = "driver", "executor"
_LEAST_OVERHEAD_MIB = 384
_OVERHEAD, _OVERHEAD_BESIDE_JVM = 0.1, 0.4
_MEMORY = re.compile(r"(\d{1,9})([kmgt]?)i?b?", re.IGNORECASE)
_MIB = {"k": 1 / 1024, "": 1.0, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024.0}


class _SparkGpu(ApiStruct, frozen=True):
    name: str
    quantity: Replicas


class _Role(ApiStruct, frozen=True):
    cores: Replicas = 1
    core_request: str = ""
    core_limit: str = ""
    memory: str = "1g"
    memory_overhead: str = ""
    gpu: _SparkGpu | None = None
    instances: Replicas = 1
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: list[dict[str, Any]] = field(default_factory=list)
    affinity: dict[str, Any] | None = None
    priority_class_name: str = ""
    scheduler_name: str = ""
    template: dict[str, Any] = field(default_factory=dict)


class _Growth(ApiStruct, frozen=True):
    enabled: bool = False
    initial_executors: Replicas = 0
    min_executors: Replicas = 0


class _SparkSpec(ApiStruct, frozen=True):
    type: str = ""
    image: str = ""
    driver: _Role = field(default_factory=_Role)
    executor: _Role = field(default_factory=_Role)
    dynamic_allocation: _Growth = field(default_factory=_Growth)
    memory_overhead_factor: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)


def spark_application(job: Obj, where: Where, _look: ObjectLookup) -> tuple[PodPart, ...]:
    here = where.below("spec")
    spec = convert(job.get("spec") or {}, _SparkSpec, here)
    executors, growth = spec.executor.instances, spec.dynamic_allocation
    if growth.enabled:
        executors = max(executors, growth.initial_executors, growth.min_executors)
    return (
        PodPart(DRIVER, 1, _template(spec, spec.driver, DRIVER, here), ("spec", DRIVER), is_made=True),
        PodPart(EXECUTOR, executors, _template(spec, spec.executor, EXECUTOR, here), ("spec", EXECUTOR), is_made=True),
    )


def _template(spec: _SparkSpec, role: _Role, name: str, where: Where) -> Obj:
    container: Obj = {"name": f"spark-kubernetes-{name}", "resources": _resources(spec, role, where.below(name))}
    if spec.image:
        container["image"] = spec.image
    inner = role.template.get("spec") or {}
    others = [one for one in inner.get("containers") or () if one.get("name") != container["name"]]
    # Spark uses the first container of a template as its own.
    made: Obj = {**inner, "containers": [container, *others[1:]]}
    for key, value in (
        ("nodeSelector", {**spec.node_selector, **role.node_selector}),
        ("tolerations", role.tolerations),
        ("affinity", role.affinity),
        ("priorityClassName", role.priority_class_name),
        ("schedulerName", role.scheduler_name),
    ):
        if value:
            made[key] = value
    meta = {key: value for key, value in (("labels", role.labels), ("annotations", role.annotations)) if value}
    return {"metadata": meta, "spec": made} if meta else {"spec": made}


def _resources(spec: _SparkSpec, role: _Role, where: Where) -> Obj:
    memory = _mib(role.memory, where.below("memory"))
    if role.memory_overhead:
        overhead = _mib(role.memory_overhead, where.below("memoryOverhead"))
    else:
        factor = _OVERHEAD if spec.type in ("Java", "Scala") else _OVERHEAD_BESIDE_JVM
        overhead = max(memory * _factor(spec, factor, where), _LEAST_OVERHEAD_MIB)
    whole = f"{math.ceil(memory + overhead)}Mi"
    requests = {"cpu": role.core_request or str(role.cores), "memory": whole}
    limits = {"memory": whole}
    if role.core_limit:
        limits["cpu"] = role.core_limit
    if role.gpu is not None and role.gpu.quantity:
        limits[role.gpu.name] = requests[role.gpu.name] = str(role.gpu.quantity)
    return {"requests": requests, "limits": limits}


def _factor(spec: _SparkSpec, otherwise: float, where: Where) -> float:
    try:
        return float(spec.memory_overhead_factor) if spec.memory_overhead_factor else otherwise
    except ValueError as error:
        what = f"expected a number, got {excerpt(spec.memory_overhead_factor)}"
        raise UserError(what, where=where.with_path("spec.memoryOverheadFactor")) from error


def _mib(text: str, where: Where) -> float:
    found = _MEMORY.fullmatch(text.strip())
    if found is None:
        raise UserError(f"expected an amount of memory, got {excerpt(text)}", where=where, fix="write e.g. 512m or 4g")
    return int(found[1]) * _MIB[found[2].lower()]
