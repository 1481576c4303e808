"""Makes the controllers that run beside the scheduling loop, by the names in `shoal.BESIDE`."""

from __future__ import annotations

from shoal.client.context import Context, Controller
from shoal.client.served import Served
from shoal.controllers.advising.advisor import advisor
from shoal.controllers.gatekeeping.installer import gatekeeping_controller
from shoal.controllers.queued_jobs.controller import queued_jobs_controller
from shoal.controllers.queued_pods.controller import queued_pods_controller
from shoal.controllers.quota_grants.controller import quota_grants_controller
from shoal.policy.admission_rules.modes import RuleModes
from shoal.wiring.queue_rules import QueueRules


def make(name: str, context: Context, served: Served, rules: QueueRules, modes: RuleModes | None = None) -> Controller:
    if name == "jobs":
        return queued_jobs_controller(context, served, rules.jobs, rules.on_change)
    if name == "pods":
        return queued_pods_controller(context, served, rules.jobs, rules.on_change)
    if name == "gatekeeper":
        return gatekeeping_controller(context, served, rules.holding, rules.on_change, modes)
    if name == "advisor":
        return advisor(context, served)
    if name == "tenants":
        return quota_grants_controller(context, served)
    raise ValueError(f"controller {name!r} is not in the list")
