"""The gate to admission that users configure: free while nothing is configured, and shut to what is not concerned.

`concerns` and `asks_webhooks` look up one answer, kept for each operation and subresource of each resource until a
configuration or the set of served resources changes. What is behind (`chain.py`) brings CEL with it, a tenth of a
second that most clusters never pay, so it is loaded with the first configuration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from shoal.embedded.apiserver.calls import AdmissionAttributes, Call, Operation
from shoal.embedded.apiserver.dynamic.admission_context import ConfiguredAdmissionContext
from shoal.embedded.apiserver.dynamic.rules import EXEMPT
from shoal.embedded.apiserver.resource import Resource

if TYPE_CHECKING:
    from shoal.embedded.apiserver.dynamic.chain import Chain


_NOTHING = (False, False)


class DynamicAdmission:
    """The `Dynamic` of the operations. `changed` reports that configurations may have changed; they are read at
    the next request.

    `again` are the built-in plugins, which run once more after an object was changed.
    """

    def __init__(self, around: ConfiguredAdmissionContext, again: Callable[[AdmissionAttributes], None]) -> None:
        self._around = around
        self._again = again
        self._chain: Chain | None = None
        self._stamp = -1
        self._concerned: dict[tuple[Resource, str, Operation], tuple[bool, bool]] = {}
        """Whether any of it is meant, and whether that may ask a webhook."""
        self._is_stale = True

    def changed(self) -> None:
        self._is_stale = True

    def _read(self) -> None:
        self._is_stale = False
        self._concerned.clear()
        reader = self._around.reader
        if not any(True for home in EXEMPT for _ in reader.all(*home)):
            self._chain = None
            return
        from shoal.embedded.apiserver.dynamic.chain import Chain

        self._chain = self._chain or Chain(self._around)
        self._chain.read()

    def concerns(self, call: Call, operation: Operation) -> bool:
        return self._known(call, operation)[0]

    def asks_webhooks(self, call: Call, operation: Operation) -> bool:
        return self._known(call, operation)[1]

    def _known(self, call: Call, operation: Operation) -> tuple[bool, bool]:
        if self._is_stale:
            self._read()
        chain = self._chain
        if chain is None:
            return _NOTHING
        stamp = self._around.catalog.stamp
        if self._stamp != stamp:
            self._concerned.clear()
            self._stamp = stamp
        key = call.resource, "scale" if call.through_scale else call.subresource, operation
        known = self._concerned.get(key)
        if known is None:
            is_exempt = call.resource.home in EXEMPT
            known = self._concerned[key] = _NOTHING if is_exempt else chain.may_concern(call, operation)
        return known

    async def mutate(self, admission: AdmissionAttributes) -> None:
        if self._is_stale:
            self._read()
        if self._chain is not None:
            await self._chain.mutate(admission, self._again)

    async def validate(self, admission: AdmissionAttributes) -> None:
        if self._is_stale:
            self._read()
        if self._chain is not None:
            await self._chain.validate(admission)
