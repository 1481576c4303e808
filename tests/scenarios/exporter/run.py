"""Decides a case of the exporter with the code of the product."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from shoal.data.dcgm_fields import field_numbers
from shoal.devices.dcgm_holders import (
    ContainerHolding,
    DeviceHolders,
    HolderOptions,
    IdType,
    LabelFilter,
    label_name,
    with_holder,
)
from shoal.devices.dcgm_jobs import JOB_LABEL, is_job_file, jobs_in, jobs_on
from shoal.devices.dcgm_selection import SelectedMetric, SelectionError, selection_of_config_map, selection_of_file
from shoal.devices.dcgm_text import LabelNames, entity_labels, family, group_of, has_attributes, ordered, spelled
from shoal.devices.device_ids import share_of
from shoal.units.errors import UserError

from .case import Case, SampleLine

Answer = dict[str, Any]
_SAMPLE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>.*)\} (?P<value>\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)')


def decide(case: Case) -> Answer:
    """A refusal is an answer of the form of an expected one."""
    try:
        return _STAGES[case.stage](case)
    except SelectionError as error:
        return {"refused": {"class": error.fault, "words": str(error)}}
    except UserError as error:
        return {"refused": {"class": "group", "words": str(error)}}


def _csv(case: Case) -> Answer:
    read = selection_of_config_map if case.via == "configmap" else selection_of_file
    names = {number: name for name, number in field_numbers().items()}
    found = read(case.text, [names.get(one, "") if isinstance(one, int) else one for one in case.profiling_fields])
    return {
        "counters": [_plain(counter) for counter in found.counters],
        "exporterCounters": [_plain(counter) for counter in found.exporter_counters],
        "skipped": list(found.skipped),
    }


def _plain(counter: SelectedMetric) -> dict[str, str]:
    return cast("dict[str, str]", msgspec.to_builtins(counter))


def _render(case: Case) -> Answer:
    rows = [(sample, sample.labels, sample.attributes) for sample in case.samples]
    return _exposition(case, rows)


def _pods(case: Case) -> Answer:
    wanted = case.options
    options = HolderOptions(
        id_type=cast("IdType", wanted.id_type),
        has_virtual_gpus=wanted.virtual_gpus,
        has_old_names=wanted.old_namespace,
        has_pod_labels=wanted.pod_labels,
        has_pod_uid=wanted.pod_uid,
        allow=tuple(wanted.allow),
        resource_names=tuple(wanted.resource_names),
    )
    holdings = [
        ContainerHolding(
            pod.name, pod.namespace, pod.container, pod.resource, tuple(pod.device_ids), pod.uid, pod.labels
        )
        for pod in case.pods
    ]
    numbers = {sample.gpu_uuid: sample.gpu for sample in case.samples}
    mig = {
        uuid: f"{numbers.get(str(line.gpu), line.gpu)}-{line.gpu_instance_id}"
        for uuid, line in case.mig_devices.items()
    }
    holders = DeviceHolders(holdings, options, mig)
    rows: list[tuple[SampleLine, Mapping[str, str], Mapping[str, str]]] = []
    for sample in case.samples:
        held = holders.of(sample.entity)
        rows += [(sample, *with_holder(sample.labels, sample.attributes, holder, options)) for holder in held]
        if not held:
            rows.append((sample, sample.labels, sample.attributes))
    return _exposition(case, rows)


def _hpc(case: Case) -> Answer:
    jobs = {name: jobs_in(text) for name, text in case.files.items() if is_job_file(name)}
    rows: list[tuple[SampleLine, Mapping[str, str], Mapping[str, str]]] = []
    for sample in case.samples:
        running = jobs_on(sample.entity, jobs)
        rows += [(sample, sample.labels, {**sample.attributes, JOB_LABEL: job}) for job in running]
        if not running:
            rows.append((sample, sample.labels, sample.attributes))
    return _exposition(case, rows)


def _exposition(case: Case, rows: Iterable[tuple[SampleLine, Mapping[str, str], Mapping[str, str]]]) -> Answer:
    counter = case.counter
    assert counter is not None
    lines = []
    group = group_of(case.group)
    for sample, labels, attributes in rows:
        own = entity_labels(sample.entity, group, LabelNames(sample.uuid_label, "hostname"))
        more = ordered(labels, attributes if has_attributes(group) else {})
        lines.append((spelled((*own, *more)), sample.value))
    text = "".join(f"{line}\n" for line in family(counter.field, counter.type, counter.help, lines))
    return {"text": text, "series": [_series(line) for line in text.splitlines() if not line.startswith("#")]}


def _series(line: str) -> Answer:
    match = _SAMPLE.fullmatch(line)
    assert match is not None, line
    labels = {name: re.sub(r"\\(.)", _unescaped, value) for name, value in _LABEL.findall(match["labels"])}
    return {"name": match["name"], "labels": labels, "value": match["value"]}


def _unescaped(match: re.Match[str]) -> str:
    return "\n" if match[1] == "n" else match[1]


def _shared_id(case: Case) -> Answer:
    share = share_of(case.device_id)
    return {"vgpu": share or "", "shared": share is not None}


def _label_name(case: Case) -> Answer:
    return {"name": label_name(case.label)}


def _label_filter(case: Case) -> Answer:
    return {"included": LabelFilter(case.allow).keeps(case.label)}


_STAGES: Mapping[str, Callable[[Case], Answer]] = {
    "csv": _csv,
    "render": _render,
    "pods": _pods,
    "hpc": _hpc,
    "shared-id": _shared_id,
    "label-name": _label_name,
    "label-filter": _label_filter,
}
