"""Label selectors: which objects are selected.

Two spellings, one value. The object form comes from specs, the text form (`selector_text.py`) from command
lines and watches; both become a `Selector`, a conjunction of requirements. Kubernetes makes a difference
that is easy to lose: a selector that is *absent* selects nothing, one that is *empty* selects everything.
`Selector.NOTHING` and `Selector.EVERYTHING` keep the two apart, where a bare list of requirements could
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from msgspec import field

from shoal.api.names import label_key_fault, label_value_fault
from shoal.api.requirement import Requirement
from shoal.api.wire import ApiStruct
from shoal.units.errors import UserError, Where, excerpt


class Selector(ApiStruct, frozen=True):
    """All requirements must hold. `None` instead of requirements holds for no object at all."""

    requirements: tuple[Requirement, ...] | None = ()

    NOTHING: ClassVar[Selector]
    EVERYTHING: ClassVar[Selector]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.requirements is not None and all(r.matches(labels) for r in self.requirements)

    def is_everything(self) -> bool:
        return self.requirements == ()


Selector.NOTHING = Selector(None)
Selector.EVERYTHING = Selector(())


class LabelSelector(ApiStruct, frozen=True):
    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[Requirement, ...] = ()

    def selector(self) -> Selector:
        """Equal selectors come out equal whatever the order their labels were written in."""
        equal = (Requirement(key, "In", (value,)) for key, value in sorted(self.match_labels.items()))
        return Selector((*equal, *self.match_expressions))

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.selector().matches(labels)

    def check(self, where: Where) -> None:
        check_labels(self.match_labels, where.below("matchLabels"))
        for index, requirement in enumerate(self.match_expressions):
            requirement.check(where.below(f"matchExpressions[{index}]"), numeric=False)


def selector_of(selector: LabelSelector | None) -> Selector:
    """The object form as a value, where absent means nothing."""
    return Selector.NOTHING if selector is None else selector.selector()


def check_labels(labels: Mapping[str, str], where: Where) -> None:
    """Labels on objects, `matchLabels` and `nodeSelector` obey the same spelling rules."""
    for key, value in labels.items():
        if fault := label_key_fault(key):
            raise UserError(f"{excerpt(key)} is not a label key: {fault}", where=where)
        if fault := label_value_fault(value):
            raise UserError(f"{excerpt(value)} is not a label value: {fault}", where=where.key(key))
