"""Write the table by which Shoal reads protobuf bodies: `make schemas`.

    python -m tools.kubernetes_protobuf --kubectl PATH [--out src/shoal/data/kubernetes/protobuf.json.xz]

A kubectl binary links the API types of its release with the number that each field has on the wire, the name it has in
JSON and whether it is a pointer (`go_types.py`). Published .proto files do not say the last, and without it a count of
zero that was set cannot be told from one that was not.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shoal.embedded.apiserver.protobuf.stored import StoredField, StoredTable
from tools.go_types import Binary, GoField, GoType

_API = "k8s.io/api/"
_META = "k8s.io/apimachinery/pkg/apis/meta/v1"
_GROUPS = {
    "admissionregistration/v1": "admissionregistration.k8s.io/v1",
    "apps/v1": "apps/v1",
    "authentication/v1": "authentication.k8s.io/v1",
    "authorization/v1": "authorization.k8s.io/v1",
    "autoscaling/v1": "autoscaling/v1",
    "autoscaling/v2": "autoscaling/v2",
    "batch/v1": "batch/v1",
    "certificates/v1": "certificates.k8s.io/v1",
    "coordination/v1": "coordination.k8s.io/v1",
    "core/v1": "v1",
    "discovery/v1": "discovery.k8s.io/v1",
    "events/v1": "events.k8s.io/v1",
    "flowcontrol/v1": "flowcontrol.apiserver.k8s.io/v1",
    "networking/v1": "networking.k8s.io/v1",
    "node/v1": "node.k8s.io/v1",
    "policy/v1": "policy/v1",
    "rbac/v1": "rbac.authorization.k8s.io/v1",
    "resource/v1": "resource.k8s.io/v1",
    "scheduling/v1": "scheduling.k8s.io/v1",
    "scheduling/v1alpha2": "scheduling.k8s.io/v1alpha2",
    "storage/v1": "storage.k8s.io/v1",
}
_SPECIAL = {
    "v1.Time": "Time",
    "v1.MicroTime": "MicroTime",
    "v1.Duration": "Duration",
    "v1.FieldsV1": "FieldsV1",
    "resource.Quantity": "Quantity",
    "intstr.IntOrString": "IntOrString",
    "runtime.RawExtension": "RawExtension",
}
_PLAIN = {
    "string": "string",
    "bool": "bool",
    "int32": "int",
    "int64": "int",
    "int": "int",
    "uint32": "uint",
    "uint64": "uint",
    "float32": "float",
    "float64": "double",
}


class Table:
    def __init__(self, go: dict[tuple[str, str], GoType]) -> None:
        self._go = go
        self.kinds: dict[str, str] = {}
        self.messages: dict[str, tuple[StoredField, ...]] = {}

    def add_kinds(self) -> None:
        for (package, name), one in sorted(self._go.items()):
            group = _GROUPS.get(package.removeprefix(_API)) if package.startswith(_API) else None
            if package == _META:
                group = "meta.k8s.io/v1"
            if group is not None and any(field.name == "TypeMeta" and field.is_embedded for field in one.fields()):
                self.kinds[f"{group} {name}"] = self._message(one)

    def _message(self, go: GoType) -> str:
        key = f"{go.package.removeprefix('k8s.io/')}.{go.text.rpartition('.')[2]}"
        if key not in self.messages:
            self.messages[key] = ()
            self.messages[key] = tuple(sorted(self._fields(go), key=lambda field: field.number))
        return key

    def _fields(self, go: GoType) -> Iterator[StoredField]:
        for field in go.fields():
            tag = field.tag("protobuf")
            if tag and tag != "-" and field.tag("json") != "-":
                yield self._field(field, int(tag.split(",")[1]))

    def _field(self, field: GoField, number: int) -> StoredField:
        name, _, options = field.tag("json").partition(",")
        go, marks = field.type, options.split(",")
        is_pointer = go.kind == "pointer"
        if is_pointer:
            go = go.element()
        is_map, is_list = go.kind == "map", False
        if is_map:
            go = go.element()
        if go.kind == "slice" and go.text.startswith("[]") and go.element().kind != "uint8":
            is_list, go = True, go.element()
            go = go.element() if go.kind == "pointer" else go
        kind, message = self._type(go)
        return StoredField(
            number=number,
            name="" if "inline" in marks else name,
            type=kind,
            message=message,
            is_list=is_list,
            is_map=is_map,
            keeps_zero=is_pointer or not ({"omitempty", "omitzero"} & set(marks)),
        )

    def _type(self, go: GoType) -> tuple[str, str]:
        if go.text in _SPECIAL:
            return _SPECIAL[go.text], ""
        if go.kind == "slice":
            return ("bytes", "") if go.element().kind == "uint8" else ("Texts", "")
        if go.kind == "struct":
            return "message", self._message(go)
        return _PLAIN[go.kind], ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kubectl", type=Path, required=True, help="a kubectl binary of the newest release")
    parser.add_argument("--out", type=Path, default=Path("src/shoal/data/kubernetes/protobuf.json.xz"))
    given = parser.parse_args()
    table = Table(Binary(given.kubectl).structs())
    table.add_kinds()
    data = msgspec.json.encode(StoredTable(table.kinds, dict(sorted(table.messages.items()))))
    given.out.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


if __name__ == "__main__":
    main()
