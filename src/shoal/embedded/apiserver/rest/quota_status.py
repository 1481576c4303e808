"""Quota statuses that change with a write: they are stored in the same commit as the object that is counted.

An object is locked before the quotas that count it. Quotas may count each other and themselves, where that order would
be a ring; so the writer of a quota locks all of its namespace from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shoal.embedded.apiserver.admission.quota.usage_arithmetic import QUOTAS
from shoal.embedded.apiserver.calls import AdmissionAttributes
from shoal.embedded.apiserver.resource import Ref
from shoal.embedded.apiserver.rest.context import ServerContext
from shoal.embedded.apiserver.rest.pending_write import PendingWrite
from shoal.embedded.apiserver.rest.quota_commits import all_quotas, commit_together, result
from shoal.embedded.apiserver.state.locks import Hold
from shoal.embedded.apiserver.state.record import Record, Write


def object_lock(context: ServerContext, ref: Ref) -> Hold:
    """The locks of a writer while the object is read, decided and committed."""
    return context.state.lock(ref, all_quotas(ref.namespace)) if ref.home == QUOTAS else context.state.lock(ref)


async def commit_charged(
    context: ServerContext,
    admission: AdmissionAttributes,
    writes: Sequence[Write],
    check: Callable[[], None] | None = None,
    *,
    gone: bool = False,
) -> list[Record]:
    """Commit the first of these writes, whose `object_lock` is held, with what comes with it and what it costs.

    `check` is the last look, in the step in which the commit gets its place in the line; what it raises is answered.
    A write that sees no quota has its place in the line of commits before any quota can appear: it is counted then.
    """
    if not context.quotas.refs(admission, gone=gone):
        if check is not None:
            check()
        return await context.state.commit(writes)
    pending = PendingWrite(admission, writes, check, gone=gone)
    if writes[0].ref.home != QUOTAS:
        return await context.quota_commits.committed(context, pending)
    await commit_together(context, admission.namespace, [pending])
    return await result(pending)
