"""Checks whether work that is created would wait, because its team, namespace or queue has spent a cost budget."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.cost_budgets import owner_of, queue_label
from shoal.policy.advice import Advice, Obj, RuleContext
from shoal.policy.declarations import Change, CheckOptions, Rule, check
from shoal.policy.fields import dig, string_keys
from shoal.policy.gpu_pods import has_devices
from shoal.policy.kinds import NAMESPACE, VOLCANO_JOB, WITH_PODS
from shoal.policy.object_set import key_of, kind_of
from shoal.policy.pod_templates import PodTemplateView, pod_templates


@check(
    Rule(
        "SHL-422",
        "OverBudget",
        "warning",
        fault="the team, the namespace or the queue of the work has spent a cost budget that is enforced",
        effect="the work waits until the budget resets or is raised",
        fix="wait until the budget resets, or have it raised",
        evidence="cluster",
        at_admission="webhook",
        is_off_by_default=True,
        bad="""\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: red-train}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: "registry.example/train:1.4", resources: {limits: {nvidia.com/gpu: 8}}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: red-train, labels: {shoal.dev/team: red}}
---
apiVersion: config.shoal.dev/v1alpha1
kind: BudgetReport
metadata: {name: shoal-budgets}
period: 2026-11
computedAt: "2026-11-27T12:00:00Z"
resetsAt: "2026-12-01T00:00:00Z"
budgets: [{kind: team, name: red, perMonth: "1000", spent: "1001.5", forecast: "1200", enforced: spent}]
""",
        changes=(Change('perMonth: "1000"', 'perMonth: "2000"'),),
    ),
    options=CheckOptions(kinds_at_admission=WITH_PODS),
)
def over_budget(obj: Obj, context: RuleContext) -> Iterator[Advice]:
    """Without a report that is current, no work is over its budget. Work without devices never waits."""
    budgets = context.cost_budgets()
    if not budgets.is_refusing:
        return
    namespace = key_of(obj)[0]
    labels = {
        key: str(value)
        for key, value in string_keys(dig(context.find(NAMESPACE, "", namespace), "metadata", "labels")).items()
    }
    for template in pod_templates(obj):
        if not has_devices(template):
            continue
        refused = budgets.refusal(owner_of(labels, namespace, _queue(obj, template)), budgets.computed_s)
        if refused is not None:
            yield Advice("OverBudget", template.path, refused.message, "wait for that, or have the budget raised")
            return


def _queue(obj: Obj, template: PodTemplateView) -> str:
    """The labels of the object count before those of its pods: queues of jobs are named there."""
    if kind_of(obj) == VOLCANO_JOB and isinstance(named := dig(obj, "spec", "queue"), str) and named:
        return named
    written = {**template.labels, **string_keys(dig(obj, "metadata", "labels"))}
    scheduler = dig(obj, "spec", "schedulerName") or template.spec.get("schedulerName") or ""
    return queue_label(str(scheduler), {key: str(value) for key, value in written.items()})
