"""Kinds that are not there are told in one line, with what does not work and what installs them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.client.kind import DEFINITIONS
from shoal.client.served import Served
from shoal.embedded.apiserver.foreign.definitions import definitions_of, tables
from shoal.wiring.missing_kinds import NEEDS, MissingKinds


@virtual
async def test_what_is_not_there_is_told_once_and_what_comes_is_told_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with small_cluster(tmp_path) as cluster:
        served = Served(cluster.context("shoal"))
        missing = MissingKinds(served, ("scheduler", "queues", "jobs"), cluster.clock)
        with caplog.at_level(logging.INFO, "shoal"):
            for _ in range(3):
                await served.look()
                missing.report()
            said = [one.message for one in caplog.records if one.name == "shoal"]
            assert said == [
                (
                    "the server does not have clusterqueues.kueue.x-k8s.io, localqueues.kueue.x-k8s.io, "
                    "resourceflavors.kueue.x-k8s.io, workloads.kueue.x-k8s.io: until it does, queues and jobs wait and "
                    "jobs and pods are not queued; to install them: "
                    "shoal crds --project kueue | kubectl apply -f -"
                )
            ]
            for file, table in tables():
                if table.project == "kueue":
                    for definition in definitions_of(file, table):
                        await cluster.create(DEFINITIONS, definition)
            await cluster.pass_time(2)
            await served.look()
        assert [one.message for one in caplog.records if one.name == "shoal"][1:] == [
            "the kinds of Kueue are served now"
        ]


@virtual
async def test_who_runs_no_queues_is_told_nothing_of_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with small_cluster(tmp_path) as cluster:
        served = Served(cluster.context("shoal"))
        missing = MissingKinds(served, ("scheduler",), cluster.clock)
        await served.look()
        with caplog.at_level(logging.INFO, "shoal"):
            missing.report()
        assert not [one for one in caplog.records if one.name == "shoal"]


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: need.project)
def test_the_command_that_is_named_prints_the_kinds_that_are_missing(need: object) -> None:
    wanted = next(one for one in NEEDS if one is need)
    there = {
        (definition["spec"]["group"], definition["spec"]["names"]["plural"])
        for file, table in tables()
        if table.project == wanted.project
        for definition in definitions_of(file, table)
    }
    assert {(kind.group, kind.plural) for kind in wanted.kinds} <= there
