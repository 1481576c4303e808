"""Which rule warns or refuses in which namespace.

The most specific setting counts: the label of the namespace for the rule, its label for all rules, the setting of the
configuration for the rule, then its setting for all rules. A label with another value than a mode counts as `off`, as
no binding of a policy selects it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

Mode = Literal["off", "warn", "enforce"]
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
        return self.rules.get(reason, self.default)

    def mode(self, reason: str, namespace: str, labels: Mapping[str, str]) -> Mode:
        """The mode in this namespace, which has these labels."""
        if namespace in self.excluded:
            return "off"
        label = labels.get(rule_label(reason), labels.get(MODE_LABEL))
        if label is None:
            return self.configured(reason)
        return "warn" if label == WARN else "enforce" if label == ENFORCE else "off"
