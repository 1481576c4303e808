"""Which rule warns or refuses in which namespace.

The most specific setting counts: the label of the namespace for the rule, its label for all rules, the setting of the
configuration for the rule, then its setting for all rules; these of all rules do not count for a rule that is off by
default. A label with another value than a mode counts as `off`, as
no binding of a policy selects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from shoal.api.admission_settings import AdmissionSettings, RuleMode, read_mode
from shoal.policy.catalogue import at_admission, reason_of, rules
from shoal.units.errors import UserError, Where, excerpt
from shoal.units.near_texts import nearest_name

Mode = RuleMode
_HERE = Where()
OFF, WARN, ENFORCE = MODES = ("off", "warn", "enforce")
LABEL_PREFIX: Final = "admission.shoal.dev/"
MODE_LABEL: Final = f"{LABEL_PREFIX}mode"
MAXIMUM_LABEL: Final = f"{LABEL_PREFIX}max-gpus-per-pod"
SYSTEM_NAMESPACES: Final = ("kube-system", "kube-public", "kube-node-lease", "shoal-system")


def rule_label(reason: str) -> str:
    """The label by which a namespace sets the mode of one rule."""
    return f"{LABEL_PREFIX}{reason}"


class RuleModes(msgspec.Struct, frozen=True):
    default: Mode = "warn"
    rules: Mapping[str, Mode] = {}
    """By reason."""
    excluded: tuple[str, ...] = SYSTEM_NAMESPACES
    """Namespaces in which no rule applies, whatever their labels say."""

    def configured(self, reason: str) -> Mode:
        """The mode in a namespace without labels."""
        return self.rules.get(reason, "off" if _is_named_only(reason) else self.default)

    def mode(self, reason: str, namespace: str, labels: Mapping[str, str]) -> Mode:
        """The mode in this namespace, which has these labels."""
        if namespace in self.excluded:
            return "off"
        common = None if _is_named_only(reason) else labels.get(MODE_LABEL)
        label = labels.get(rule_label(reason), common)
        if label is None:
            return self.configured(reason)
        return "warn" if label == WARN else "enforce" if label == ENFORCE else "off"


def _is_named_only(reason: str) -> bool:
    rule = rules().get(reason)
    return rule is not None and rule.is_off_by_default


def modes_of(settings: AdmissionSettings, namespace: str, where: Where = _HERE) -> RuleModes:
    """`namespace`: Shoal's own, which is excluded. Raises UserError for a rule that is not marked for admission."""
    found: dict[str, Mode] = {}
    for name, written in settings.rules.items():
        reason = reason_of(name)
        if reason not in at_admission():
            near = nearest_name(name, at_admission())
            fix = f"did you mean {near}?" if near else "shoal policy rules lists the rules"
            raise UserError(f"{excerpt(name)} is no rule at admission", where=where.below("rules"), fix=fix)
        found[reason] = read_mode(written)
    excluded = dict.fromkeys((*SYSTEM_NAMESPACES, namespace, *settings.excluded_namespaces))
    return RuleModes(read_mode(settings.mode), found, tuple(excluded))
