"""ServiceAccounts."""

from __future__ import annotations

from shoal.embedded.apiserver.kinds.complaints import Obj
from shoal.embedded.apiserver.strategy import Strategy

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_WARNING = (
    "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+; prefer separate namespaces "
    "to isolate access to mounted secrets"
)


class ServiceAccountStrategy(Strategy):
    counts_generation = False
    returns_deleted = True

    def warnings(self, new: Obj, old: Obj | None) -> list[str]:
        def is_marked(account: Obj | None) -> bool:
            return _MOUNTABLE in ((account or {}).get("metadata") or {}).get("annotations", ())

        return [_WARNING] if is_marked(new) and not is_marked(old) else []
