"""Write the schemas that Shoal ships, from two published sources: `make schemas`.

    python -m tools.kubernetes_schemas --kubectl PATH [--out src/shoal/data/kubernetes]

Fields, types, descriptions and list types come from the PyPI package `kubernetes-validate`, which carries the OpenAPI
definitions of each release. Merge keys and what Go does with empty fields come from the struct types in a kubectl
binary (`go_types.py`); one of the newest release serves all, for fields are added and never change their Go type.
The few groups that kubectl does not link are described by the tables at the end.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from shoal.data.kubernetes_schemas import MINORS, NEWEST, Described, StoredDefinition, StoredField, Zero
from tools.go_types import Binary, GoField, GoType

Json = Mapping[str, Any]
GoFields = dict[str, GoField]

_X = "x-kubernetes-"
_PREFIX = "#/$defs/"
_PLAIN_GO = {("string", ""): "string", ("integer", "int32"): "int32", ("integer", "int64"): "int64"} | {
    ("boolean", ""): "bool",
    ("string", "byte"): "[]uint8",
    ("number", "double"): "float64",
}


class Converter:
    def __init__(self, go: Mapping[tuple[str, str], GoType]) -> None:
        self._go = go

    def definition(self, name: str, published: Json) -> StoredDefinition:
        known = self._go_fields(name)
        fields = {key: self._field(name, key, one, known) for key, one in published.get("properties", {}).items()}
        kinds = published.get(f"{_X}group-version-kind", ())
        return StoredDefinition(
            fields=fields,
            required=tuple(published.get("required", ())),
            map_type=published.get(f"{_X}map-type", ""),
            is_struct="properties" in published or name in _EMPTY_STRUCTS,
            kinds=tuple((one["group"], one["version"], one["kind"]) for one in kinds),
        )

    def _go_fields(self, definition: str) -> GoFields | None:
        package, _, name = definition.rpartition(".")
        path = "k8s.io/" + package.removeprefix("io.k8s.").replace(".", "/")
        found = self._go.get((path, name))
        return dict(_json_fields(found)) if found is not None and found.kind == "struct" else None

    def _field(self, definition: str, name: str, published: Json, known: GoFields | None) -> StoredField:
        go = known.get(name) if known is not None else None
        value = self._value(published, go.type if go else None)
        if go is None:
            strategies = published.get(f"{_X}patch-strategy", "")
            merge_key = published.get(f"{_X}patch-merge-key", "")
            zero = _zero_unknown(definition, name, value)
        else:
            strategies, merge_key, zero = go.tag("patchStrategy"), go.tag("patchMergeKey"), _zero(go)
        patch_strategies = tuple(one for one in strategies.split(",") if one)
        return msgspec.structs.replace(
            value,
            list_type=published.get(f"{_X}list-type", ""),
            map_keys=tuple(published.get(f"{_X}list-map-keys", ())),
            map_type=published.get(f"{_X}map-type", ""),
            merge_key=merge_key,
            patch_strategies=patch_strategies,
            zero=zero,
        )

    def _value(self, published: Json, go: GoType | None) -> StoredField:
        if go is not None and go.kind == "pointer":
            go = go.element()
        if "$ref" in published:
            return StoredField(ref=published["$ref"].removeprefix(_PREFIX))
        kind, form = _single(published.get("type", "")), published.get("format", "")
        element = go.element() if go is not None and go.kind in ("map", "slice") else None
        items, values = published.get("items"), published.get("additionalProperties")
        plain = _PLAIN_GO.get((kind, form), "") if items is None and values is None else (go.text if go else "")
        return StoredField(
            type=kind,
            format=form,
            go="" if go is None or go.text == plain else go.text,
            items=None if items is None else self._value(items, element),
            values=None if values is None else self._value(values, element),
        )


def _json_fields(go: GoType) -> Iterator[tuple[str, GoField]]:
    """By their names in JSON; fields of embedded structs stand among the others."""
    for field in go.fields():
        name = field.tag("json").partition(",")[0]
        inner = field.type.element() if field.type.kind == "pointer" else field.type
        if field.is_embedded and not name and inner.kind == "struct":
            yield from _json_fields(inner)
        elif name != "-":
            yield name or field.name, field


def _single(kind: str | list[str]) -> str:
    """The package adds null to every type, which tells nothing: Go takes null for any field."""
    return kind if isinstance(kind, str) else next(one for one in kind if one != "null")


def _zero(go: GoField) -> Zero:
    options = go.tag("json").split(",")[1:]
    if go.type.kind in ("pointer", "interface"):
        return ""
    if go.type.kind in ("slice", "map"):
        return "drop" if "omitempty" in options or "omitzero" in options else ""
    if go.type.kind == "struct":
        return "drop" if "omitzero" in options else "fill"
    return "drop" if "omitempty" in options or "omitzero" in options else "fill"


def _zero_unknown(definition: str, name: str, value: StoredField) -> Zero:
    struct = definition.rpartition(".")[2]
    if (struct, name) in _POINTERS:
        return ""
    if value.ref:
        return "fill" if (struct, name) in _ALWAYS else ""
    return "fill" if (struct, name) in _ALWAYS else "drop"


def convert(minor: str, source: Path, go: Mapping[tuple[str, str], GoType], out: Path) -> dict[str, Described]:
    """The descriptions, which are written together with those of the other releases."""
    published = json.loads((source / f"v{minor}.0-local" / "_definitions.json").read_bytes())["$defs"]
    converter = Converter(go)
    shapes = {name: converter.definition(name, one) for name, one in sorted(published.items())}
    _write(out / f"{minor}.json.xz", shapes)
    return {name: _described(one) for name, one in sorted(published.items())}


def differing(words: Mapping[str, Mapping[str, Described]]) -> dict[str, dict[str, Described]]:
    """By release: all of the newest one; of the others those that differ from it."""
    newest = words[NEWEST]
    return {
        minor: {name: one for name, one in own.items() if minor == NEWEST or newest.get(name) != one}
        for minor, own in words.items()
    }


def _described(published: Json) -> Described:
    fields = {key: one.get("description", "") for key, one in published.get("properties", {}).items()}
    return Described(published.get("description", ""), {key: text for key, text in fields.items() if text})


def _write(path: Path, content: object) -> None:
    path.write_bytes(lzma.compress(msgspec.json.encode(content), preset=9 | lzma.PRESET_EXTREME))
    sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")


_EMPTY_STRUCTS = frozenset(
    {
        "io.k8s.api.apiserverinternal.v1alpha1.StorageVersionSpec",
        "io.k8s.api.scheduling.v1alpha2.BasicSchedulingPolicy",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceSubresourceStatus",
    }
)
# Of apiextensions and apiregistration, which kubectl does not link: what Go holds by pointer and so keeps when empty...
_POINTERS = frozenset(
    ("JSONSchemaProps", name)
    for name in (
        *("maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "multipleOf", "maxProperties"),
        *("minProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-list-type", "x-kubernetes-map-type"),
    )
) | {
    ("CustomResourceDefinitionVersion", "deprecationWarning"),
    ("CustomResourceSubresourceScale", "labelSelectorPath"),
    ("ServiceReference", "path"),
    ("ServiceReference", "port"),
    ("ValidationRule", "optionalOldSelf"),
    ("ValidationRule", "reason"),
    ("WebhookClientConfig", "url"),
    # Slices without omitempty: an empty one is written as such.
    ("CustomResourceDefinitionList", "items"),
    ("CustomResourceDefinitionSpec", "versions"),
    ("WebhookConversion", "conversionReviewVersions"),
    ("APIServiceList", "items"),
}
# ... and what it always writes.
_ALWAYS = frozenset(
    {
        ("APIService", "metadata"),
        ("APIService", "spec"),
        ("APIService", "status"),
        ("APIServiceCondition", "status"),
        ("APIServiceCondition", "type"),
        ("APIServiceSpec", "groupPriorityMinimum"),
        ("APIServiceSpec", "versionPriority"),
        ("CustomResourceColumnDefinition", "jsonPath"),
        ("CustomResourceColumnDefinition", "name"),
        ("CustomResourceColumnDefinition", "type"),
        ("CustomResourceConversion", "strategy"),
        ("CustomResourceDefinition", "metadata"),
        ("CustomResourceDefinition", "spec"),
        ("CustomResourceDefinition", "status"),
        ("CustomResourceDefinitionCondition", "status"),
        ("CustomResourceDefinitionCondition", "type"),
        ("CustomResourceDefinitionNames", "kind"),
        ("CustomResourceDefinitionNames", "plural"),
        ("CustomResourceDefinitionSpec", "group"),
        ("CustomResourceDefinitionSpec", "names"),
        ("CustomResourceDefinitionSpec", "scope"),
        ("CustomResourceDefinitionStatus", "acceptedNames"),
        ("CustomResourceDefinitionVersion", "name"),
        ("CustomResourceDefinitionVersion", "served"),
        ("CustomResourceDefinitionVersion", "storage"),
        ("CustomResourceSubresourceScale", "specReplicasPath"),
        ("CustomResourceSubresourceScale", "statusReplicasPath"),
        ("SelectableField", "jsonPath"),
        ("ValidationRule", "rule"),
    }
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kubectl", type=Path, required=True, help="a kubectl binary of the newest release")
    parser.add_argument("--schemas", type=Path, help="the folder kubernetes-json-schema of kubernetes-validate")
    parser.add_argument("--out", type=Path, default=Path("src/shoal/data/kubernetes"))
    given = parser.parse_args()
    source = given.schemas or _installed()
    go = Binary(given.kubectl).structs()
    words = {minor: convert(minor, source, go, given.out) for minor in MINORS}
    _write(given.out / "descriptions.json.xz", differing(words))


def _installed() -> Path:
    found = find_spec("kubernetes_validate")
    if found is None or found.origin is None:
        raise SystemExit("kubernetes-validate is not installed: pip install kubernetes-validate, or say --schemas")
    return Path(found.origin).parent / "kubernetes-json-schema"


if __name__ == "__main__":
    main()
