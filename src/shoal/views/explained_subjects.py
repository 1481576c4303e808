"""Finds the paragraph about a subject: from the list of subjects, the rules, and the tables of Xid errors, GPU models,
MIG profiles and cloud instances. Works without a cluster and without a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from shoal.data.gpus import Model, find_model, models
from shoal.data.instances import Instance, catalog, find_instance
from shoal.data.metrics import exported_metrics
from shoal.data.mig import RESOURCE_PREFIX, layouts
from shoal.data.subjects import Subject, subjects
from shoal.devices.xids import APPLICATION_ERRORS, Xid, is_known, xid_of
from shoal.units.near_texts import near_texts

_LEAST_LETTERS: Final = 3
_XID: Final = re.compile(r"(?:xid[ :]*)?([0-9]{1,6})", re.IGNORECASE)
_RULE: Final = re.compile(r"[Ss][Hh][Ll]-[0-9]{3}|[A-Z][a-z]+[A-Z][a-zA-Z]*")
_VICTIMS: Final = {
    "none": "no program ends",
    "newest": "the program that caused it ends",
    "all": "all programs on the GPU end",
}


class Explained(msgspec.Struct, frozen=True):
    subject: str
    kind: str
    text: str


def explained(text: str) -> list[Explained]:
    """What is known about it, the exact matches first; empty if nothing is."""
    wanted = text.strip().lower()
    exact = [
        *(_listed(wanted) or _metrics(wanted)),
        *_xids(wanted),
        *_profiles(wanted),
        *_machines(text.strip()),
        *_rules(text.strip()),
    ]
    if exact or len(wanted) < _LEAST_LETTERS:
        return exact
    return [_of(subject) for subject in subjects() if any(_is_part(name.lower(), wanted) for name in subject.names)]


def similar_subjects(text: str) -> tuple[str, ...]:
    return near_texts(text, all_subjects())


def all_subjects() -> list[str]:
    return [*(name for subject in subjects() for name in subject.names), *exported_metrics()]


def xid_text(xid: Xid) -> str:
    """What the error means, what it does, and what an operator does about it."""
    plugin = "ignores it" if xid.number in APPLICATION_ERRORS else "marks the GPU as unhealthy"
    lost = "; the GPU no longer responds" if xid.is_lost else ""
    meaning = xid.meaning if is_known(xid.number) else "Not a known error, so the worst effects are assumed"
    return f"{meaning}: {_VICTIMS[xid.victims]}{lost}. The device plugin {plugin}. To do: {xid.advice}."


def _listed(wanted: str) -> list[Explained]:
    return [_of(subject) for subject in subjects() if wanted in {name.lower() for name in subject.names}]


def _metrics(wanted: str) -> list[Explained]:
    """One that Shoal exports; series of a histogram have the name of it."""
    base = wanted.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
    metric = exported_metrics().get(wanted) or exported_metrics().get(base)
    if metric is None:
        return []
    labels = f" with the labels {metric.labels}" if metric.labels else ""
    return [Explained(metric.name, "metric", f"A {metric.type}{labels}: {metric.text}.")]


def _of(subject: Subject) -> Explained:
    return Explained(", ".join(subject.names), subject.kind, subject.text)


def _is_part(name: str, wanted: str) -> bool:
    """Whether one contains the other: people paste whole lines of logs."""
    return wanted in name or (len(name) > _LEAST_LETTERS and name in wanted)


def _xids(wanted: str) -> Iterator[Explained]:
    found = _XID.fullmatch(wanted)
    if found is not None and is_known(int(found[1])):
        xid = xid_of(int(found[1]))
        yield Explained(f"Xid {xid.number}", "error", xid_text(xid))


def _rules(text: str) -> Iterator[Explained]:
    """By id or name."""
    if not _RULE.fullmatch(text):
        return
    # Imported here: no other subject needs the rules.
    from shoal.policy.catalogue import faults, reason_of, rules

    rule = rules().get(reason_of(text))
    if rule is not None:
        fault = faults().get(rule.reason, rule.fault)
        links = f" See {', '.join(rule.links)}." if rule.links else ""
        effect = rule.effect[0].upper() + rule.effect[1:]
        text = f"{rule.severity.capitalize()}: {fault}. {effect}. To do: {rule.fix}.{links}"
        yield Explained(f"{rule.id}, {rule.reason}", "rule", text)


def _profiles(wanted: str) -> Iterator[Explained]:
    name = wanted.removeprefix(RESOURCE_PREFIX)
    having = [(layout, profile) for layout in layouts() if (profile := layout.profile(name)) is not None]
    if having:
        sizes = [
            f"{layout.name}: {profile.memory_mib or 'unknown'} MiB, {profile.compute} of {layout.compute_slices} "
            f"compute slices, at most {profile.max} on a GPU"
            for layout, profile in having
        ]
        text = f"A MIG profile; pods request it as {having[0][1].resource} with the strategy mixed. {'; '.join(sizes)}."
        yield Explained(name, "MIG profile", text)


def _machines(text: str) -> Iterator[Explained]:
    model, instance = find_model(text), find_instance(text)
    for each in [model] if model is not None else _models_called(text):
        yield Explained(each.name, "GPU model", _model_text(each))
    if instance is not None:
        yield Explained(instance.type, "instance type", _instance_text(instance))


def _models_called(text: str) -> Iterable[Model]:
    """`h100`: all models whose name begins so."""
    wanted = text.upper()
    return [model for model in models() if len(text) > 1 and model.name.upper().split("-")[0] == wanted]


def _model_text(model: Model) -> str:
    rates = "" if model.fp16_tflops is None else f", {model.fp16_tflops:g} teraflops in half precision"
    link = f"{model.link_gb_s:g} GB/s over {model.link}" if model.link else "no NVLink"
    mig = "can be divided into MIG instances" if model.mig else "has no MIG"
    labels = ", ".join(model.labels)
    return (
        f"{model.memory_gb} GB {model.memory_type} at {model.bandwidth_gb_s:g} GB/s{rates}, {model.power_w} W, {link}; "
        f"{mig}. Product labels, without the prefix NVIDIA-: {labels}."
    )


def _instance_text(instance: Instance) -> str:
    price = "no list price" if instance.usd is None else f"${instance.usd} an hour on demand"
    dated = catalog().price_date(instance)
    day = "" if dated is None or instance.usd is None else f" (list of {dated.isoformat()})"
    gpus = f"{instance.gpus} x {instance.gpu}" if instance.gpu else "no GPU"
    return (
        f"A machine of {instance.provider} with {gpus}, {instance.vcpus} vCPUs and {instance.memory_gib:g} GiB; "
        f"{price}{day}."
    )
