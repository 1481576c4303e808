"""Labels the Secret of a service account token with the day on which the token was used last, as Kubernetes does.

It happens behind the request, and at most once a day for each Secret.
"""

from __future__ import annotations

from shoal.embedded.apiserver.background_retries import BackgroundRetries
from shoal.embedded.apiserver.resource import Home, Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.security.legacy_tokens import LAST_USED, with_last_used
from shoal.embedded.apiserver.state.record import Write

_SECRETS = Home("", "secrets")


class UsedTokens:
    """Labels until `close`."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._errands = BackgroundRetries()

    def used(self, namespace: str, name: str) -> None:
        ref = Ref(_SECRETS, namespace, name)
        secret = self._context.state.reader.get("", "secrets", namespace, name)
        if secret is not None and with_last_used(secret, int(self._context.clock.seconds())) is not None:
            self._errands.start(f"the label of Secret {namespace}/{name}", lambda: self._label(ref))

    async def close(self) -> None:
        await self._errands.close()

    async def _label(self, ref: Ref) -> None:
        state = self._context.state
        async with state.lock(ref):
            record = state.get(ref)
            labelled = with_last_used(record.obj(), int(self._context.clock.seconds())) if record is not None else None
            if record is None or labelled is None:
                return
            labels = {**record.labels, LAST_USED: labelled["metadata"]["labels"][LAST_USED]}
            await state.commit([Write(ref, labelled, record, record.uid, labels, record.fields)])
