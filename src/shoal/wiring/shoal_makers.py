"""Makes the controllers that run beside the scheduling loop, by the names in `shoal.BESIDE`."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.served import Served
from shoal.controllers.advising.advisor import advisor
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.queued_jobs.controller import queued_jobs_controller
from shoal.controllers.queued_pods.controller import queued_pods_controller
from shoal.wiring.queue_ruling import QueueRuling


def made(name: str, context: Context, served: Served, ruling: QueueRuling) -> Controller:
    if name == "jobs":
        return queued_jobs_controller(context, served, ruling.jobs, ruling.when_new)
    if name == "pods":
        return queued_pods_controller(context, served, ruling.jobs, ruling.when_new)
    if name == "gatekeeper":
        return gatekeeping_controller(context, served, ruling.holding, ruling.when_new)
    if name == "advisor":
        return advisor(context, served)
    raise ValueError(f"controller {name!r} is not in the list")
