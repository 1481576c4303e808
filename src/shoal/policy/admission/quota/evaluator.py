"""The protocol of quota evaluators: the usage of one object of a kind. The base counts objects; some kinds count more.

Every kind counts as `count/<plural>.<group>`; four old ones by their bare name as well. A quota with scopes tracks
only kinds that have such scopes.
"""

from __future__ import annotations

from collections.abc import Iterable

from shoal.policy.admission.pod_resources import Amounts, Obj
from shoal.policy.admission.quota.scopes import Scope
from shoal.units.quantity import Quantity

Home = tuple[str, str]
"""Group and plural."""
ONE = Quantity.of(1)
_BARE_NAMES = frozenset({"configmaps", "replicationcontrollers", "resourcequotas", "secrets"})


class Evaluator:
    def __init__(self, home: Home) -> None:
        group, plural = self.home = home
        self.count_name = f"count/{plural}.{group}" if group else f"count/{plural}"
        bare = {plural} if not group and plural in _BARE_NAMES else set()
        self._names = frozenset({self.count_name} | bare)

    def handles(self, operation: str, subresource: str) -> bool:
        """Whether such a write can change what is used."""
        return operation == "CREATE" and not subresource

    def uses_other_amounts(self, old: Obj, new: Obj) -> bool:  # noqa: ARG002 - for kinds whose other changes count
        """Whether any other change alters what is used: a pod that ends, say."""
        return False

    def asks_for_more(self, old: Obj, new: Obj) -> bool:  # noqa: ARG002 - for kinds that can
        """Whether any other change is to be refused when it is more than a quota has left."""
        return False

    def matching(self, names: Iterable[str]) -> set[str]:
        """Those of a quota's names that objects of this kind count against."""
        return {name for name in names if name in self._names}

    def in_scope(self, scope: Scope, obj: Obj) -> bool:  # noqa: ARG002 - for kinds that have scopes
        return False

    def missing(self, required: set[str], obj: Obj) -> str:  # noqa: ARG002 - for pods
        """What an object must say for its usage to be known; empty when nothing is missing."""
        return ""

    def usage(self, obj: Obj) -> Amounts:  # noqa: ARG002 - an object counts as one, whatever it says
        return dict.fromkeys(self._names, ONE)
