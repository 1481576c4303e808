"""Checks configurations that NVIDIA's components refuse: MIG layouts, and lists of counters of dcgm-exporter.

What is refused follows from the readers that Shoal's own agent uses, and from the tables of GPUs and of DCGM's fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.data.dcgm_fields import field_numbers
from shoal.data.mig import Layout, layouts
from shoal.devices.dcgm_selection import METRIC_TYPES
from shoal.devices.mig_config import MigConfigError, read_mig_config
from shoal.devices.mig_layout_checks import counts_fit, nearest, written
from shoal.devices.mig_layouts import Counts, MigSpec
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.config_map_data import configurations
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import string_keys
from shoal.policy.kinds import CONFIG_MAP
from shoal.units.go_csv import CsvError, records
from shoal.units.near_texts import meant_words

_LAYOUTS, _FIELD, _COMPUTED = "mig-configs", "DCGM_", "DCGM_EXP_"
_CSV_FIELDS = 3
_MOST_FAULTS = 20


@check(
    Rule(
        "SHL-512",
        "ImpossibleMigLayout",
        "error",
        fault="a MIG layout cannot be applied: a field, a profile or the number of instances is wrong",
        effect="the MIG manager fails, and the node keeps its former layout",
        fix="write profiles of the GPU, and no more instances than fit on one",
        links=("https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",),
        bad="""\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  four: [{devices: all, mig-enabled: true, mig-devices: {2g.10gb: 4}}]
""",
        changes=(Change("2g.10gb: 4", "2g.10gb: 3"),),
    ),
    Rule(
        "SHL-513",
        "UnlistedMigProfile",
        "warning",
        fault="a MIG layout has a profile that no GPU of Shoal's tables has",
        effect="if the GPU has none either, the MIG manager fails, and the node keeps its former layout",
        fix="compare the name with the output of `nvidia-smi mig -lgip`",
        links=("https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",),
        bad="""\
version: v1
mig-configs:
  all-disabled: [{devices: all, mig-enabled: false}]
  two: [{devices: all, mig-enabled: true, mig-devices: {3g.21gb: 2}}]
""",
        changes=(Change("3g.21gb", "3g.20gb"),),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"mig-configs",)),
)
def possible_mig_layouts(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for here, content in configurations(obj, _LAYOUTS):
        if not string_keys(content.get(_LAYOUTS)):
            continue
        try:
            found = read_mig_config(content)
        except MigConfigError as error:
            what = f"the MIG manager refuses the file: {error}"
            yield Advice("ImpossibleMigLayout", f"{here}.{_LAYOUTS}", what, "correct the file as the message says")
            continue
        for name, specs in found.items():
            for at, spec in enumerate(specs):
                if fault := _fault(spec):
                    reason, what, fix = fault
                    yield Advice(reason, f"{here}.{_LAYOUTS}.{name}[{at}].mig-devices", what, fix)


def _fault(spec: MigSpec) -> tuple[str, str, str] | None:
    """The reason, why no GPU that the line may select can have the instances, and what to do."""
    counts = tuple((name, count) for name, count in spec.counts if count)
    able = [each for each in layouts() if not spec.filters or _selects(spec.filters, each)] or list(layouts())
    if not spec.enabled or not counts or any(counts_fit(_usual(counts, each), each) for each in able):
        return None
    impossible = "ImpossibleMigLayout"
    names = [name for name, _ in counts]
    known = [each for each in able if all(each.profile(_whole(name)) for name, _ in _usual(counts, each))]
    if known:
        best = known[0]
        what = f"{written(counts)} do not fit on one GPU with these profiles, such as {best.name}"
        return impossible, what, f"the nearest possible layout is {written(nearest(_usual(counts, best), best))}"
    everywhere, profiles = _profiles(layouts()), _profiles(able)
    if unlisted := [name for name in names if _whole(name) not in everywhere]:
        what = f"no known GPU has the MIG profile {unlisted[0]}{meant_words(unlisted[0], profiles)}"
        return "UnlistedMigProfile", what, "compare the name with the output of `nvidia-smi mig -lgip`"
    if wrong := [name for name in names if _whole(name) not in profiles]:
        return impossible, f"no selected GPU has the MIG profile {wrong[0]}", "write a profile of the GPU"
    what = f"no GPU has all of the profiles {', '.join(names)}"
    return impossible, what, "write a line for each model, with a device-filter"


def _profiles(found: Iterable[Layout]) -> set[str]:
    return {name for each in found for name in (*(profile.name for profile in each.profiles), *dict(each.early_names))}


def _usual(counts: Counts, layout: Layout) -> Counts:
    """The instances with the names of profiles that the layout has."""
    early = dict(layout.early_names)
    usual = ((name, _whole(name), count) for name, count in counts)
    return tuple((name.replace(whole, early.get(whole, whole)), count) for name, whole, count in usual)


def _whole(name: str) -> str:
    """The GPU instance of a compute instance: `1c.2g.10gb` is a part of `2g.10gb`."""
    first, _, rest = name.partition(".")
    return rest if first.endswith("c") else name


def _selects(filters: Iterable[str], layout: Layout) -> bool:
    lower = [each.lower() for each in filters]
    return any(each.lower() in wanted for each in layout.pci for wanted in lower)


@check(
    Rule(
        "SHL-615",
        "InvalidCounters",
        "error",
        fault="a list of counters of dcgm-exporter names a field or a type that does not exist",
        effect="the exporter does not start, so no metrics of GPUs are collected",
        fix="write lines of the form FIELD, type, help",
        links=("https://github.com/NVIDIA/dcgm-exporter/blob/main/etc/default-counters.csv",),
        bad="""\
apiVersion: v1
kind: ConfigMap
metadata: {name: metrics, namespace: gpu-operator}
data:
  dcgm-metrics.csv: |
    DCGM_FI_DEV_GPUUTIL, gauge, GPU utilization (in %).
""",
        changes=(Change("GPUUTIL", "GPU_UTIL"),),
    ),
    kinds=(CONFIG_MAP,),
    options=CheckOptions(hints=(b"DCGM_FI_", b"DCGM_EXP_")),
)
def exporter_counters(obj: Obj, _: RuleContext) -> Iterator[Advice]:
    for key, text in string_keys(obj.get("data")).items():
        if isinstance(text, str) and _is_list(text):
            faults = list(_counter_faults(text))
            for what, fix in faults[:_MOST_FAULTS]:
                yield Advice("InvalidCounters", f"data[{key}]", what, fix)


def _is_list(text: str) -> bool:
    """Whether most lines have a field and a type, at least a misspelled one: rules, dashboards and notes name fields
    too."""
    lines = [line.strip() for line in text.splitlines()]
    return 2 * sum(map(_is_counter, lines)) > sum(map(_is_data, lines))


def _is_counter(line: str) -> bool:
    field, _, rest = line.partition(",")
    kind = rest.partition(",")[0].strip()
    return field.startswith(_FIELD) and (kind in METRIC_TYPES or bool(kind and meant_words(kind, METRIC_TYPES)))


def _is_data(line: str) -> bool:
    return bool(line) and not line.startswith("#")


def _counter_faults(text: str) -> Iterator[tuple[str, str]]:
    try:
        rows = records(text)
    except CsvError as error:
        yield f"the exporter cannot read the list: {error}", "write lines of the form FIELD, type, help"
        return
    known = field_numbers()
    for row in rows:
        field, kind, *rest = (*(cell.strip() for cell in row), "", "")[: max(len(row), 2)]
        if len(row) != _CSV_FIELDS:
            yield (
                f"{field} has {len(row)} fields instead of 3: {' '.join(rest)}".rstrip(": "),
                "write FIELD, type, help",
            )
        elif field not in known and not field.startswith(_COMPUTED):
            yield f"DCGM has no field {field}{meant_words(field, known)}", "write a field of DCGM"
        elif kind not in METRIC_TYPES:
            yield f"{kind} of {field} is no type of a metric{meant_words(kind, METRIC_TYPES)}", "write gauge or counter"
