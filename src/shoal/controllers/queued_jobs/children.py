"""Jobs that another queued job made: they run while that one is admitted, and are started by it."""

from __future__ import annotations

from shoal.controllers.queued_jobs.office import Office
from shoal.controllers.queued_jobs.workloads import Workload, owner_value
from shoal.controllers.queued_work.fields import put
from shoal.store.live.item import Item, Obj
from shoal.store.live.kind import Kind


async def hold_child(office: Office, job: Obj, kind: Kind, above: Item) -> None:
    """Of a job that runs, and whose it is."""
    shape = office.row.shape
    if not shape.suspend or shape.ending(job) is not None:
        return
    there = [Workload(one) for one in office.of_owner[owner_value(kind.group, kind.name, above.key)]]
    if any(one.is_controlled_by(above.uid) and one.is_admitted for one in there):
        return
    put(job, shape.suspend, True)
    await office.write_job(job)
    office.say(job, "Suspended", "Kueue managed child job suspended")
