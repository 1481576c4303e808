"""Evaluates match conditions: expressions that must all be true before a webhook or policy is called for a write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.embedded.apiserver.admission_expressions import Expression, Scope
from shoal.embedded.apiserver.cel.faults import CelFault
from shoal.embedded.apiserver.cel.kinds import CelType
from shoal.policy.admission.faults import aggregate


class ConditionsError(Exception):
    """Some could not be evaluated and none was false; what that means is the failure policy's to say."""


class Conditions:
    """The compiled match conditions of one webhook or policy."""

    def __init__(self, declared: Sequence[Mapping[str, Any]], visible: Mapping[str, CelType]) -> None:
        self.expressions = [Expression(one.get("expression", ""), visible, "bool") for one in declared]

    def hold(self, scope: Scope) -> bool:
        """One that is false decides, whatever happens to the others."""
        faults = []
        for expression in self.expressions:
            try:
                if expression.value(dict(scope)) is False:
                    return False
            except CelFault as fault:
                faults.append(str(fault))
        if faults:
            raise ConditionsError(aggregate(faults))
        return True
