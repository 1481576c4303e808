"""`shoal crds --webhook-service`: definitions that lead to the webhook, as a server takes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from build.small_clusters import small_cluster
from build.virtual_time import virtual
from shoal.cli.main import main
from shoal.client.kind import DEFINITIONS


@virtual
async def test_kinds_with_several_versions_lead_to_the_service(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crds", "--project", "kueue,jobset", "--webhook-service", "shoal-system/hooks"]) == 0
    printed = list(yaml.safe_load_all(capsys.readouterr().out))
    async with small_cluster(tmp_path) as cluster:
        for one in printed:
            made = await cluster.create(DEFINITIONS, one)
            conversion = made["spec"]["conversion"]
            if made["spec"]["group"] != "kueue.x-k8s.io":
                assert conversion == {"strategy": "None"}
                continue
            assert conversion["strategy"] == "Webhook"
            service = conversion["webhook"]["clientConfig"]["service"]
            assert service == {"namespace": "shoal-system", "name": "hooks", "port": 443, "path": "/convert"}


@pytest.mark.parametrize("said", ["hooks", "/hooks", "a/", "a/b/c"])
def test_a_service_without_its_namespace_is_refused(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "--webhook-service", said]) == 2
    assert "is not NAMESPACE/NAME; as in shoal-system/shoal-webhook" in capsys.readouterr().err


def test_the_oldest_version_is_stored_where_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "--stored", "oldest", "-o", "json"]) == 0
    stored = {
        one["spec"]["names"]["kind"]: [version["name"] for version in one["spec"]["versions"] if version["storage"]]
        for one in json.loads(capsys.readouterr().out)["items"]
    }
    assert stored.pop("Topology") == ["v1alpha1"]
    assert set(map(tuple, stored.values())) == {("v1beta1",)}


def test_other_words_for_what_is_stored_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["crds", "--stored", "v3"]) == 2
    assert "newest, oldest" in capsys.readouterr().err
