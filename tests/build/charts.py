"""The chart as real Helm renders it, beside what `shoal install` would apply for the same values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import pytest
from tools.chart import CHART, ROOT
from tools.image import version

from build.yaml_texts import yaml_values
from shoal.install.manifest import Address, address_of, manifest
from shoal.install.release import MANAGED_BY, Release
from shoal.install.values.reading import ValuesText, read_values

Obj = dict[str, Any]
_DIGEST = "shoal.dev/config-digest"


def helm() -> Any:
    """The module of helm-python-sdk; the test is skipped without it."""
    return pytest.importorskip("helm_python", reason="needs helm-python-sdk, which is not installed")


def rendered(values: Obj, name: str = "shoal", namespace: str = "shoal-system") -> list[Obj]:
    return [one for text in _files(values, name, namespace).values() for one in yaml_values(text) if one]


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
        found["data"] = {name: list(yaml_values(text)) for name, text in obj["data"].items()}
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


def _all_files(values: Obj, name: str, namespace: str) -> Mapping[str, str]:
    return _rendered_files(json.dumps(values), name, namespace)


@cache
def _rendered_files(values: str, name: str, namespace: str) -> Mapping[str, str]:
    """Kept, since several tests look at the files for the same values and Helm takes a fifth of a second."""
    with helm().Chart.load(ROOT / CHART) as chart:
        found: dict[str, str] = chart.render(json.loads(values), name=name, namespace=namespace)
    return MappingProxyType(found)
