"""Whether the indexes that succeeded are enough for the whole job."""

from __future__ import annotations

from shoal.controllers.jobs.indexes import Indexes, read_indexes
from shoal.controllers.jobs.job import SuccessPolicy


def met_rule(policy: SuccessPolicy | None, completions: int, succeeded: Indexes) -> str:
    """Which rule is met, in words; empty while none is."""
    if policy is None or not succeeded:
        return ""
    for place, rule in enumerate(policy.rules):
        if rule.succeeded_indexes is None:
            is_met = rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
        else:
            wanted = read_indexes(rule.succeeded_indexes, completions)
            done = len(wanted & succeeded)
            is_enough = rule.succeeded_count is not None and done >= rule.succeeded_count
            is_met = bool(wanted) and (is_enough or done == len(wanted))
        if is_met:
            return f"Matched rules at index {place}"
    return ""
