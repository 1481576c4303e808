"""Ecosystems share words: what is one object in a cluster is told by kind and group together."""

from __future__ import annotations

import pytest

from shoal.api.decode import read
from shoal.units.errors import UserError

VOLCANO = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: train, namespace: team}\n"
KAI = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: train, namespace: team}\n"


def test_groups_of_two_ecosystems_may_have_one_name() -> None:
    assert len(read(f"{VOLCANO}---\n{KAI}", "groups.yaml")) == 2


def test_two_groups_of_one_ecosystem_may_not() -> None:
    with pytest.raises(UserError, match="is given twice"):
        read(f"{VOLCANO}---\n{VOLCANO}", "groups.yaml")
