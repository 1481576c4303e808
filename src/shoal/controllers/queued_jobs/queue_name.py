"""Reads the queue name of a job.

The label of the job counts. Kueue ignores the name as an annotation, or on the pod templates. Shoal uses it
there too and records an Event, because a job that bypasses all quota is the last thing its user intended.

Rejected: using a label of a template as well. It queues each pod by itself, in any cluster.
"""

from __future__ import annotations

from shoal.api.decode import Unknown
from shoal.api.kueue.probable_mistakes import QUEUE_NAME, misplaced_queue
from shoal.api.meta import ObjectMeta
from shoal.client.item import Item, Obj
from shoal.controllers.queued_work.fields import string_map

_QUEUE_NAME_BYTES = QUEUE_NAME.encode()


def queue_of(item: Item, job: Obj) -> tuple[str, str]:
    """The name, empty if there is none, and its path if that is the wrong place."""
    name = string_map(job, "metadata", "labels").get(QUEUE_NAME, "")
    if name or _QUEUE_NAME_BYTES not in item.data:
        return name, ""
    meta = ObjectMeta(name=item.name, namespace=item.namespace, annotations=string_map(job, "metadata", "annotations"))
    misplaced = misplaced_queue(Unknown(job["apiVersion"], job["kind"], meta, job))
    if misplaced is None or misplaced.is_label:
        return "", ""
    return misplaced.name, misplaced.path
