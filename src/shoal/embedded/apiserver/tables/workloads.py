"""The rows of what runs pods: deployments, jobs and their like."""

from __future__ import annotations

from typing import Any

from shoal.embedded.apiserver.label_selectors import text_of
from shoal.embedded.apiserver.tables.ages import duration, instant_s, since
from shoal.embedded.apiserver.tables.phrases import NONE, UNSET, containers, labels, selector, several, truth
from shoal.embedded.apiserver.tables.printer import Obj, Printer, age, condition_status, heads, name, part


def _replicas(obj: Obj) -> int:
    found: int | None = part(obj, "spec").get("replicas")
    return 1 if found is None else found


def _count(obj: Obj, key: str) -> int:
    found: int = part(obj, "status").get(key) or 0
    return found


def _template(obj: Obj) -> tuple[str, str]:
    return containers(part(part(obj, "spec"), "template"))


def deployment(obj: Obj, now_s: int) -> list[Any]:
    ready = f"{_count(obj, 'readyReplicas')}/{_replicas(obj)}"
    return [
        name(obj),
        ready,
        _count(obj, "updatedReplicas"),
        _count(obj, "availableReplicas"),
        age(obj, now_s),
        *_template(obj),
        text_of(part(obj, "spec").get("selector")),
    ]


def _replicated(obj: Obj, now_s: int, selected: str) -> list[Any]:
    counts = [_replicas(obj), _count(obj, "replicas"), _count(obj, "readyReplicas")]
    return [name(obj), *counts, age(obj, now_s), *_template(obj), selected]


def replica_set(obj: Obj, now_s: int) -> list[Any]:
    return _replicated(obj, now_s, selector(part(obj, "spec").get("selector")))


def replication_controller(obj: Obj, now_s: int) -> list[Any]:
    return _replicated(obj, now_s, labels(part(obj, "spec").get("selector")))


def stateful_set(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), f"{_count(obj, 'readyReplicas')}/{_replicas(obj)}", age(obj, now_s), *_template(obj)]


_DAEMON_COUNTS = (
    "desiredNumberScheduled",
    "currentNumberScheduled",
    "numberReady",
    "updatedNumberScheduled",
    "numberAvailable",
)


def daemon_set(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    nodes = labels(part(part(spec, "template"), "spec").get("nodeSelector"))
    counts = [_count(obj, key) for key in _DAEMON_COUNTS]
    return [name(obj), *counts, nodes, age(obj, now_s), *_template(obj), selector(spec.get("selector"))]


_JOB_STATES = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job_state(obj: Obj) -> str:
    conditions = part(obj, "status").get("conditions")
    if condition_status(conditions, "Complete") == "True":
        return "Complete"
    if condition_status(conditions, "Failed") == "True":
        return "Failed"
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((word for kind, word in _JOB_STATES if condition_status(conditions, kind) == "True"), "Running")


def _job_duration(status: Obj, now_s: int) -> str:
    start_s = instant_s(status.get("startTime") or "")
    if start_s is None:
        return ""
    end_s = instant_s(status.get("completionTime") or "")
    return duration((now_s if end_s is None else end_s) - start_s)


def job(obj: Obj, now_s: int) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    succeeded, completions = status.get("succeeded") or 0, spec.get("completions")
    if completions is not None:
        done = f"{succeeded}/{completions}"
    else:
        parallelism = spec.get("parallelism") or 0
        done = f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"
    names, images = _template(obj)
    ran = _job_duration(status, now_s)
    return [name(obj), _job_state(obj), done, ran, age(obj, now_s), names, images, selector(spec.get("selector"))]


def cron_job(obj: Obj, now_s: int) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    last = status.get("lastScheduleTime")
    job_spec = part(part(spec, "jobTemplate"), "spec")
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        truth(spec.get("suspend")),
        len(status.get("active") or ()),
        since(last, now_s) if last else NONE,
        age(obj, now_s),
        *containers(part(job_spec, "template")),
        selector(job_spec.get("selector")),
    ]


def controller_revision(obj: Obj, now_s: int) -> list[Any]:
    owner = next((one for one in obj["metadata"].get("ownerReferences") or () if one.get("controller")), None)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = f"{owner.get('kind', '')}.{group}" if group else owner.get("kind", "")
        shown = f"{kind.lower()}/{owner.get('name', '')}"
    return [name(obj), shown, obj.get("revision") or 0, age(obj, now_s)]


def pod_template(obj: Obj, _: int) -> list[Any]:
    template = part(obj, "template")
    return [name(obj), *containers(template), labels(part(template, "metadata").get("labels"))]


def budget(obj: Obj, now_s: int) -> list[Any]:
    spec = part(obj, "spec")
    bounds = [str(spec[key]) if spec.get(key) is not None else "N/A" for key in ("minAvailable", "maxUnavailable")]
    return [name(obj), *bounds, _count(obj, "disruptionsAllowed"), age(obj, now_s)]


_METRICS = {
    "External": ("external", False),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
}


def _metric(spec: Obj, status: Obj) -> str:
    found = _METRICS.get(spec.get("type", ""))
    if found is None:
        return "<unknown type>"
    key, is_resource = found
    target, current = part(part(spec, key), "target"), part(part(status, key), "current")
    prefix = f"{part(spec, key).get('name', '')}: " if is_resource else ""
    if target.get("averageValue") is not None:
        suffix = " (avg)" if key in ("external", "object") else ""
        return f"{prefix}{current.get('averageValue') or '<unknown>'}/{target['averageValue']}{suffix}"
    if is_resource:
        used, wanted = current.get("averageUtilization"), target.get("averageUtilization")
        shown = "<unknown>" if used is None else f"{used}%"
        return f"{prefix}{shown}/{'<auto>' if wanted is None else f'{wanted}%'}"
    return f"{current.get('value') or '<unknown>'}/{target.get('value') or '<nil>'}"


def _metrics_of_v1(spec: Obj, status: Obj) -> tuple[list[Obj], list[Obj]]:
    """The first version knows processors only; the same metric in the words of the second."""

    def cpu(member: str, percent: int | None) -> list[Obj]:
        found = {"name": "cpu", member: {"averageUtilization": percent}}
        return [] if percent is None else [{"type": "Resource", "resource": found}]

    wanted = cpu("target", spec.get("targetCPUUtilizationPercentage"))
    return wanted, cpu("current", status.get("currentCPUUtilizationPercentage"))


def autoscaler(obj: Obj, now_s: int) -> list[Any]:
    spec, status = part(obj, "spec"), part(obj, "status")
    if obj.get("apiVersion") == "autoscaling/v1":
        wanted, measured = _metrics_of_v1(spec, status)
    else:
        wanted, measured = spec.get("metrics") or [], status.get("currentMetrics") or []
    texts = [_metric(one, measured[at] if at < len(measured) else {}) for at, one in enumerate(wanted)]
    target = part(spec, "scaleTargetRef")
    least = spec.get("minReplicas")
    return [
        name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        several(texts, len(texts), 2, ", ") if texts else NONE,
        UNSET if least is None else str(least),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        age(obj, now_s),
    ]


def scale(obj: Obj, now_s: int) -> list[Any]:
    return [name(obj), part(obj, "spec").get("replicas") or 0, _count(obj, "replicas"), age(obj, now_s)]


_TEMPLATE = ("+Containers", "+Images")
_REPLICATED = heads("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", *_TEMPLATE, "+Selector")
_DAEMON_HEADS = ("Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer")
_CRON_HEADS = ("Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age")

WORKLOADS: dict[tuple[str, str], Printer] = {
    ("", "podtemplates"): Printer(heads("Name", "Containers", "Images", "Pod Labels"), pod_template),
    ("", "replicationcontrollers"): Printer(_REPLICATED, replication_controller),
    ("apps", "controllerrevisions"): Printer(heads("Name", "Controller", "Revision", "Age"), controller_revision),
    ("apps", "daemonsets"): Printer(
        heads("Name", *_DAEMON_HEADS, "Node Selector", "Age", *_TEMPLATE, "+Selector"), daemon_set
    ),
    ("apps", "deployments"): Printer(
        heads("Name", "Ready", "Up-to-date", "Available", "Age", *_TEMPLATE, "+Selector"), deployment
    ),
    ("apps", "replicasets"): Printer(_REPLICATED, replica_set),
    ("apps", "statefulsets"): Printer(heads("Name", "Ready", "Age", *_TEMPLATE), stateful_set),
    ("autoscaling", "horizontalpodautoscalers"): Printer(
        heads("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), autoscaler
    ),
    ("batch", "cronjobs"): Printer(heads("Name", *_CRON_HEADS, *_TEMPLATE, "+Selector"), cron_job),
    ("batch", "jobs"): Printer(heads("Name", "Status", "Completions", "Duration", "Age", *_TEMPLATE, "+Selector"), job),
    ("policy", "poddisruptionbudgets"): Printer(
        heads("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), budget
    ),
}

SCALE = Printer(heads("Name", "Desired:integer", "Available:integer", "Age"), scale)
