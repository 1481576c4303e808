"""The chart as real Helm renders it, beside what `shoal install` would apply for the same values."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tools.chart import CHART, ROOT
from tools.image import version

from shoal.install.manifest import Address, address_of, manifest
from shoal.install.release import MANAGED_BY, Release
from shoal.install.values.reading import ValuesText, read_values

Obj = dict[str, Any]
_DIGEST = "shoal.dev/config-digest"


def helm() -> Any:
    """The module of helm-python-sdk; the test is skipped without it."""
    return pytest.importorskip("helm_python", reason="needs helm-python-sdk, which is not installed")


def rendered(values: Obj, name: str = "shoal", namespace: str = "shoal-system") -> list[Obj]:
    return [one for text in _files(values, name, namespace).values() for one in yaml.safe_load_all(text) if one]


def notes(values: Obj) -> str:
    return _all_files(values, "shoal", "shoal-system")["shoal/templates/NOTES.txt"]


def installed(text: str, release: Release) -> dict[Address, Obj]:
    """The objects of `shoal install`. Helm itself creates the namespace."""
    values = read_values([ValuesText("--values", text, "values.yaml")])
    return {address_of(one): comparable(one) for one in manifest(release, values) if one["kind"] != "Namespace"}


def by_address(objects: list[Obj]) -> dict[Address, Obj]:
    found = {address_of(one): comparable(one) for one in objects}
    assert len(found) == len(objects), "an object is rendered twice"
    return found


def comparable(obj: Obj) -> Obj:
    """Without who manages it, and with configurations as values: the two write YAML differently."""
    meta = {**obj["metadata"], "labels": {**obj["metadata"]["labels"]}}
    assert meta["labels"].pop(MANAGED_BY) in ("Helm", "shoal")
    found = {**obj, "metadata": meta}
    if obj["kind"] == "ConfigMap" and "data" in obj:
        found["data"] = {name: list(yaml.safe_load_all(text)) for name, text in obj["data"].items()}
    if obj["kind"] == "Deployment":
        template = obj["spec"]["template"]
        annotations = {name: text for name, text in template["metadata"]["annotations"].items() if name != _DIGEST}
        assert len(annotations) < len(template["metadata"]["annotations"])
        without = {**template, "metadata": {**template["metadata"], "annotations": annotations}}
        found["spec"] = {**obj["spec"], "template": without}
    return found


def release(name: str = "shoal", namespace: str = "shoal-system") -> Release:
    return Release(name, namespace, version())


def _files(values: Obj, name: str, namespace: str) -> dict[str, str]:
    return {path: text for path, text in _all_files(values, name, namespace).items() if path.endswith(".yaml")}


def _all_files(values: Obj, name: str, namespace: str) -> dict[str, str]:
    with helm().Chart.load(ROOT / CHART) as chart:
        found: dict[str, str] = chart.render(values, name=name, namespace=namespace)
    return found
