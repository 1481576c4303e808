"""Where pods may run: names of GPUs that no driver reports, labels of nobody, conditions that leave out too much.

Of a condition that no node meets the scheduler tells on the pod as well; here it is told on the object that people
write, and also where a preference is concerned, which goes unheard in silence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from shoal.api.selectors import LabelSelector
from shoal.api.taints import HARD_EFFECTS, Taint
from shoal.controllers.advising.advice import Advice
from shoal.controllers.advising.around import Around, NodeSight, dig, maps, named, texts
from shoal.controllers.advising.templates import PodShape, shapes
from shoal.data.gpus import PRODUCT_LABEL, is_short_product, meant_products
from shoal.store.live.item import Obj

_COUNT = "nvidia.com/gpu.count"
_PRESENT = "nvidia.com/gpu.present"
_NODE_AFFINITY = "affinity.nodeAffinity"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def product_names(obj: Obj, around: Around) -> Iterator[Advice]:
    """The label is the name that the driver reports, dashes for blanks: with the vendor in front since R470."""
    known = {node.labels.get(PRODUCT_LABEL, "") for node in around.nodes()}
    for shape in shapes(obj):
        for path, key, _, values in conditions(shape):
            wrong = [
                value for value in values if key == PRODUCT_LABEL and is_short_product(value) and value not in known
            ]
            if wrong:
                meant = " or ".join(dict.fromkeys(one for value in wrong for one in meant_products(value, known)))
                yield Advice(
                    "UnknownProductName",
                    path,
                    f"no driver reports {' or '.join(wrong)}: the names begin with the vendor",
                    f"did you mean {meant}?",
                )


def strict_counts(obj: Obj, _: Around) -> Iterator[Advice]:
    """`Gt` leaves out the number itself, and a number of GPUs says nothing of what joins them."""
    for shape in shapes(obj):
        asked = shape.gpus()
        for path, key, operator, values in conditions(shape):
            if key != _COUNT or operator != "Gt" or not asked or values != [str(asked)]:
                continue
            yield Advice(
                "CountTooStrict",
                path,
                f"Gt {asked} leaves out nodes with exactly {asked} GPUs, which these pods would fit on, and the count "
                "does not say whether NVLink joins them",
                f"write Gt {asked - 1}, and name the product to have NVLink",
            )


def labels_of_nobody(obj: Obj, around: Around) -> Iterator[Advice]:
    """A node selector by a label that no node carries."""
    nodes = list(around.nodes())
    if not nodes:
        return
    for shape in shapes(obj):
        for key, value in named(shape.spec.get("nodeSelector")).items():
            if any(key in node.labels for node in nodes):
                continue
            has_better = shape.asks_gpus() and any(node.labels.get(_PRESENT) == "true" for node in nodes)
            fix = f"did you mean {_PRESENT}=true?" if has_better else "label the nodes that are meant"
            yield Advice(
                "UnknownNodeLabel",
                f"{shape.path}.nodeSelector[{key}]",
                f"no node has the label {key}, and no component sets {key}={value} by itself: the pods wait",
                fix,
            )


def repels_others_only(obj: Obj, _: Around) -> Iterator[Advice]:
    """Pods that are to keep apart have to carry what they repel."""
    for shape in shapes(obj):
        path = f"{shape.path}.affinity.podAntiAffinity.{_REQUIRED}"
        for at, term in enumerate(maps(dig(shape.spec, "affinity", "podAntiAffinity", _REQUIRED))):
            selector = _selector(term.get("labelSelector"))
            if selector is None or selector.matches({key: str(value) for key, value in shape.labels.items()}):
                continue
            yield Advice(
                "RepelsOthersOnly",
                f"{path}[{at}].labelSelector",
                "does not match the labels of the pod itself: two of its kind may still share a node",
                "give the pod the labels that it repels",
            )


def untolerated(obj: Obj, around: Around) -> Iterator[Advice]:
    """Of kinds whose pods somebody else makes: on tainted GPU nodes they would wait, and nobody can say so yet."""
    taints = _kept_off([node for node in around.nodes() if _PRESENT in node.labels])
    for shape in shapes(obj):
        missed = [taint for taint in taints if shape.asks_gpus() and not shape.tolerates(taint)]
        if missed:
            yield Advice(
                "UntoleratedTaint",
                f"{shape.path}.tolerations",
                f"all nodes with GPUs are tainted {missed[0]}, which its pods do not tolerate: they would wait",
                f"add a toleration: key {missed[0].key}, operator Exists",
            )


def _kept_off(nodes: list[NodeSight]) -> list[Taint]:
    """What all of them are tainted with, in the first one's words."""
    by_key = [{taint.key: taint for taint in node.taints if taint.effect in HARD_EFFECTS} for node in nodes]
    return [taint for key, taint in by_key[0].items() if all(key in each for each in by_key)] if by_key else []


Condition = tuple[str, str, str, list[str]]
"""Path, key, operator and values."""


def conditions(shape: PodShape) -> Iterator[Condition]:
    """On the labels of nodes, required and preferred."""
    for key, value in named(shape.spec.get("nodeSelector")).items():
        yield f"{shape.path}.nodeSelector[{key}]", key, "In", [str(value)]
    affinity = dig(shape.spec, "affinity", "nodeAffinity")
    here = f"{shape.path}.{_NODE_AFFINITY}"
    for at, term in enumerate(maps(dig(affinity, _REQUIRED, "nodeSelectorTerms"))):
        yield from _of_term(f"{here}.{_REQUIRED}.nodeSelectorTerms[{at}]", term)
    for at, weighed in enumerate(maps(dig(affinity, _PREFERRED))):
        yield from _of_term(f"{here}.{_PREFERRED}[{at}].preference", weighed.get("preference"))


def _of_term(path: str, term: Any) -> Iterable[Condition]:
    for at, one in enumerate(maps(dig(term, "matchExpressions"))):
        yield f"{path}.matchExpressions[{at}]", str(one.get("key")), str(one.get("operator")), texts(one.get("values"))


def _selector(raw: Any) -> LabelSelector | None:
    try:
        return msgspec.convert(raw, LabelSelector) if isinstance(raw, dict) else None
    except msgspec.ValidationError:
        return None
