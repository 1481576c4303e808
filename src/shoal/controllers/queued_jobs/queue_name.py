"""Which queue a job asks for.

The label on the job counts. As an annotation, on the job or on the templates of its pods, no cluster follows it: it is
taken for what its writer meant, and said, for letting such a job run past all quota is what they meant least.

Rejected: following a label on a template as well. It makes each of the pods wait on its own, in any cluster.
"""

from __future__ import annotations

from shoal.api.decode import Unknown
from shoal.api.kueue.slips import QUEUE_NAME, misplaced_queue
from shoal.api.meta import ObjectMeta
from shoal.controllers.queued_work.fields import string_map
from shoal.store.live.item import Item, Obj

_NAMED = QUEUE_NAME.encode()


def queue_of(item: Item, job: Obj) -> tuple[str, str]:
    """The name, empty for none, and where it stands if that is the wrong place."""
    name = string_map(job, "metadata", "labels").get(QUEUE_NAME, "")
    if name or _NAMED not in item.data:
        return name, ""
    meta = ObjectMeta(name=item.name, namespace=item.namespace, annotations=string_map(job, "metadata", "annotations"))
    slip = misplaced_queue(Unknown(job["apiVersion"], job["kind"], meta, job))
    if slip is None or slip.is_label:
        return "", ""
    return slip.name, slip.path
