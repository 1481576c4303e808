"""The table of job kinds and everything that a new row needs elsewhere."""

from __future__ import annotations

import pytest

from shoal.controllers.gatekeeping.held_kinds import HELD_KINDS
from shoal.controllers.queued_jobs.job_kinds import BY_KIND as QUEUED
from shoal.data.permissions import lines_of
from shoal.embedded.apiserver.foreign.definitions import definitions
from shoal.store.queues.job_parts import JOB_KINDS, JobKind
from shoal.store.snapshot.kinds import WANTED

_IDS = [f"{row.kind.group}/{row.kind.name}" for row in JOB_KINDS]
_WRAPPERS = "workload.codeflare.dev"
"""AppWrappers: nothing is decided by the object itself, and nobody ships their definition."""


@pytest.mark.parametrize("row", JOB_KINDS, ids=_IDS)
def test_every_job_kind_has_a_row_for_its_progress_in_all_its_versions(row: JobKind) -> None:
    assert QUEUED[row.kind.group, row.kind.name].kinds == row.versions


def test_no_kind_is_queued_that_is_not_in_the_table() -> None:
    assert QUEUED.keys() == {(row.kind.group, row.kind.name) for row in JOB_KINDS}


@pytest.mark.parametrize("row", JOB_KINDS, ids=_IDS)
def test_shoal_may_write_every_job_kind(row: JobKind) -> None:
    lines = [line for line in lines_of(("jobs",)) if f"@{row.kind.group}" in line.split()]
    assert any(row.kind.plural in word.split(",") for line in lines for word in line.split())


@pytest.mark.parametrize("row", JOB_KINDS, ids=_IDS)
def test_a_kind_with_a_field_that_suspends_it_is_held_at_its_creation(row: JobKind) -> None:
    assert (row.kind in HELD_KINDS) == bool(row.shape.suspend)


@pytest.mark.parametrize("row", [row for row in JOB_KINDS if row.kind.group != _WRAPPERS], ids=_IDS[:-1])
def test_every_job_kind_is_in_snapshots_and_in_the_embedded_cluster(row: JobKind) -> None:
    defined = {(one["spec"]["group"], one["spec"]["names"]["kind"]) for one in definitions()}
    assert row.kind in WANTED
    assert row.kind.group == "batch" or (row.kind.group, row.kind.name) in defined
