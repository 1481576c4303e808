"""Every kind that a rule names is a resource that the advisor can watch."""

from __future__ import annotations

from shoal.controllers.advising.advised_kinds import RESOURCES
from shoal.policy.advised_kinds import LOOKUP_KINDS, advised_kinds
from shoal.policy.kinds import TRAINING_JOBS, GroupKind
from shoal.store.queues.job_parts import JOB_KINDS


def test_every_kind_of_the_rules_is_a_resource_and_no_other_is() -> None:
    assert {row.kind for row in advised_kinds()} | set(LOOKUP_KINDS) == set(RESOURCES)


def test_the_training_jobs_of_the_rules_are_those_of_the_table_of_job_kinds() -> None:
    assert {GroupKind(row.kind.group, row.kind.name) for row in JOB_KINDS if row.replica_types} == set(TRAINING_JOBS)
