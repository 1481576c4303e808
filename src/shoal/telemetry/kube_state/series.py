"""Lines of series by family, and names as kube-state-metrics writes them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from shoal.api.meta import ObjectMeta
from shoal.units.errors import UserError
from shoal.units.quantity import Quantity

Family = dict[str, list[str]]
"""Lines by the name of the metric."""
Labels = tuple[tuple[str, str], ...]
_OTHER = re.compile(r"[^a-zA-Z0-9_]")
_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")
_SPECIAL = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_BYTES = frozenset({"memory", "storage", "ephemeral-storage"})
_NANO = 10**9


def add(found: Family, name: str, labels: Iterable[tuple[str, str]], value: float = 1) -> None:
    text = ",".join(f'{key}="{part.translate(_SPECIAL)}"' for key, part in labels)
    number = int(value) if value == int(value) else value
    found.setdefault(name, []).append(f"{name}{{{text}}} {number}")


def common_series(kind: str, meta: ObjectMeta, label: str = "") -> tuple[Family, Labels]:
    """What all kinds have, and the labels that name the object."""
    found: Family = {}
    own = (("namespace", meta.namespace), (label or kind, meta.name))
    add(found, f"kube_{kind}_labels", (*own, *exported(meta.labels)))
    if meta.creation_timestamp is not None:
        add(found, f"kube_{kind}_created", own, meta.creation_timestamp.timestamp())
    return found, own


def add_all(found: Family, kind: str, own: Labels, values: dict[str, int]) -> None:
    for name, value in values.items():
        add(found, f"kube_{kind}_{name}", own, value)


def exported(labels: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`app.kubernetes.io/name` is `label_app_kubernetes_io_name`; of equal names each has a number at the end."""
    names: dict[str, list[tuple[str, str]]] = {}
    for key, value in sorted(labels.items()):
        names.setdefault(f"label_{_small(key)}", []).append((key, value))
    for name, parts in names.items():
        for at, (_, value) in enumerate(parts, 1):
            yield (name if len(parts) == 1 else f"{name}_conflict{at}"), value


def amounts(resources: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Names, units and values. Amounts that cannot be read are left out."""
    for name, value in plain_amounts(resources):
        if name == "cpu":
            unit = "core"
        elif name in _BYTES or name.startswith(("hugepages-", "attachable-volumes-")):
            unit = "byte"
        else:
            unit = "integer"
        yield _OTHER.sub("_", name), unit, value


def plain_amounts(resources: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """The same with the names that Kubernetes gives to the resources."""
    for name, text in resources.items():
        try:
            yield name, Quantity.parse(str(text)).nano / _NANO
        except UserError:
            continue


def _small(name: str) -> str:
    return _CAPITAL.sub(r"\1_\2", _OTHER.sub("_", name)).lower()
