"""Decides a case about MIG configuration by the code that agents and simulated nodes use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shoal.data.gpus import find_model
from shoal.data.mig import Layout
from shoal.devices.gpu_clients import after_change, while_changing
from shoal.devices.mig_assertions import attempts, layout_matches, mig_parted_steps, mode_matches
from shoal.devices.mig_config import MigConfigError, parse_mig_config, read_mig_config, selected_config
from shoal.devices.mig_export import exported_specs
from shoal.devices.mig_gpus import MigGpu, layout_of_pci_id
from shoal.devices.mig_layout_checks import counts_fit
from shoal.devices.mig_layouts import DISABLED, ENABLED, MigOffer, MigSpec, Specs, config_name, generated_layouts
from shoal.devices.mig_profile_names import flattened, parse_profile
from shoal.devices.pci_ids import is_matched, parse_pci_id

from .case import Case, GpuLine

Answer = dict[str, Any]


def decide(case: Case) -> Answer:
    try:
        return _STAGES[case.stage](case)
    except MigConfigError as error:
        return {"refused": {"class": "", "words": str(error)}}


def _parse(case: Case) -> Answer:
    return {"accepted": {"configs": sorted(parse_mig_config(case.document))}}


def _filter(case: Case) -> Answer:
    assert case.gpu is not None
    entry = {"devices": "all", "mig-enabled": False}
    if case.filter is not None:
        entry["device-filter"] = case.filter
    (spec,) = read_mig_config({"version": "v1", "mig-configs": {"one": [entry]}})["one"]
    return {"matches": is_matched(spec.filters, parse_pci_id(_pci(case.gpu)))}


def _possible(case: Case) -> Answer:
    assert case.gpu is not None
    facts = _facts(case.gpu)
    counts = _counts(case.instances)
    return {"possible": facts is not None and counts_fit(counts, facts)}


def _order(case: Case) -> Answer:
    counts = _counts(case.instances)
    return {"firstAttempt": list(flattened(counts)), "attemptsBeforeFailure": attempts(counts)}


def _config_name(case: Case) -> Answer:
    name = config_name(case.profile or case.value or "")
    return {"name": name, "configName": name, "config": name}


def _generate(case: Case) -> Answer:
    offers = [MigOffer(_pci(gpu), tuple((one.profile, one.max) for one in gpu.profiles)) for gpu in case.gpus]
    kinds = list({offer.pci_id: offer for offer in offers}.values())
    found = {name: specs for name, specs in generated_layouts(kinds).items() if name not in (DISABLED, ENABLED)}
    return {"configs": {name: _generated(specs) for name, specs in found.items()}, "balanced": "all-balanced" in found}


def _generated(specs: Specs) -> Any:
    if len(specs) == 1 and not specs[0].filters:
        return dict(specs[0].counts)
    return [{"filters": list(spec.filters), "instances": dict(spec.counts)} for spec in specs]


def _export(case: Case) -> Answer:
    states = [(gpu.index, gpu.model or _pci(gpu), gpu.mig_enabled, _counts(gpu.instances)) for gpu in case.gpus]
    return {"entries": [_entry(spec) for spec in exported_specs(states)]}


def _entry(spec: MigSpec) -> Answer:
    devices: Any = spec.devices if spec.devices == "all" else list(spec.devices)
    return {
        "devices": devices,
        "migEnabled": spec.enabled,
        "filters": list(spec.filters),
        "instances": dict(spec.counts),
    }


def _component_label(case: Case) -> Answer:
    return {"whilePausing": while_changing(case.value), "afterwards": after_change(case.value)}


def _select(case: Case) -> Answer:
    configs = parse_mig_config(case.document)
    specs = selected_config(configs, case.selected)
    name = next(name for name, found in configs.items() if found is specs)
    return {"selected": name, "name": name, "config": name}


def _apply(case: Case) -> Answer:
    specs = selected_config(parse_mig_config(case.document), case.selected)
    gpus = [_gpu(line) for line in case.gpus]
    run = mig_parted_steps(specs, gpus, mode_only=case.mode_only)
    answer: Answer = {
        "modeMatches": mode_matches(specs, gpus),
        "configMatches": layout_matches(specs, gpus),
        "operations": list(run.steps),
        "after": [{"index": gpu.index, "migEnabled": gpu.is_mig, "instances": dict(gpu.counts)} for gpu in run.after],
    }
    if run.problem is not None:
        answer["refused"] = {"class": "", "words": str(run.problem)}
    return answer


def _gpu(line: GpuLine) -> MigGpu:
    pci = parse_pci_id(_pci(line))
    return MigGpu(
        index=line.index,
        pci=(pci,) if pci is not None else (),
        facts=_facts(line),
        is_capable=line.mig_capable,
        is_mig=line.mig_enabled,
        counts=_counts(line.instances),
        needs_reset=line.reset_needed_for_mode_change,
        name=line.model,
    )


def _facts(line: GpuLine) -> Layout | None:
    model = find_model(line.model) if line.model else None
    return layout_of_pci_id(line.device) or (model.mig_layout() if model is not None else None)


def _pci(line: GpuLine) -> str:
    return f"{line.device}:{line.subsystem}" if line.subsystem else line.device


def _counts(instances: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((parse_profile(name).text, count) for name, count in instances.items() if count))


_STAGES: Mapping[str, Callable[[Case], Answer]] = {
    "parse": _parse,
    "filter": _filter,
    "possible": _possible,
    "order": _order,
    "config-name": _config_name,
    "generate": _generate,
    "export": _export,
    "component-label": _component_label,
    "select": _select,
    "apply": _apply,
}
