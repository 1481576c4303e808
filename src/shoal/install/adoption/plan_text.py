"""The plan of an adoption in words, for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shoal.install.adoption.plan import AdoptionPlan


def plan_lines(plan: AdoptionPlan) -> Iterator[str]:
    yield f"plan: release {plan.release} in {plan.release_namespace} takes over from {plan.title} in {plan.namespace}"
    yield from _chapter("taken over", (f"{one.objects} {one.kind}: {one.use}" for one in plan.taken_over))
    yield from _chapter("settings that are followed", plan.settings)
    yield from _chapter(
        "stopped, and started again by a revert",
        (f"Deployment {one.namespace}/{one.name}: {one.replicas} -> 0 replicas" for one in plan.stopped),
    )
    yield from _chapter(
        "webhooks that are not called until a revert",
        (f"{one.kind} {one.name}: {', '.join(one.hooks)}" for one in plan.set_aside),
    )
    yield from _chapter(
        "objects that Shoal's webhook converts between versions",
        (f"CustomResourceDefinition {name}" for name in plan.conversions),
    )
    yield from _chapter(
        "aggregated APIs that are removed until a revert", (f"APIService {name}" for name in plan.removed_api_services)
    )
    yield from _chapter("unchanged", plan.unchanged)
    yield from _chapter(
        "without effect while Shoal decides",
        (": ".join(part for part in (one.obj, one.path, one.effect) if part) for one in plan.without_effect),
    )
    yield from _chapter("afterwards", plan.next_steps)


def _chapter(title: str, lines: Iterable[str]) -> Iterator[str]:
    found = list(lines)
    if found:
        yield f"{title}:"
        yield from (f"  {line}" for line in found)
