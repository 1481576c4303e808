"""Says on an object itself that it cannot be read: an Event, beside the conditions that queues get with their statuses.

Workloads are not among those: their QuotaReserved condition and its Event say it.
"""

from __future__ import annotations

from shoal.store.live.context import Context
from shoal.store.live.ecosystem_kinds import WORKLOADS
from shoal.store.watched.troubles import Troubles


def tell_troubles(context: Context, troubles: Troubles) -> None:
    for trouble in troubles.take():
        if (trouble.kind.group, trouble.kind.name) == (WORKLOADS.group, WORKLOADS.name):
            continue
        namespace, _, name = trouble.key.rpartition("/")
        about = {
            "kind": trouble.kind.name,
            "apiVersion": trouble.kind.api_version,
            "metadata": {"name": name, "namespace": namespace, "uid": trouble.uid},
        }
        context.events.record(about, trouble.reason, trouble.message, type_="Warning")
