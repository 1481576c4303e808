"""SchedulingShards among manifests: `shoal decide`, `shoal why` and `shoal queue` follow node pools and settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from build.manifests import Object, as_file, node, pod, thing
from shoal.api.groups.kai import NODE_POOL_LABEL, QUEUE_LABEL, USAGE_ANNOTATION
from shoal.cli.main import main
from shoal.engine.queues.disciplines.kai.usage_record import QueueUse, UsageRecord, UsageWindow
from shoal.engine.queues.disciplines.kai.usage_text import usage_text

_ENDLESS = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


class Command:
    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._capsys = capsys
        self.err = ""

    def __call__(self, *words: str, objects: list[Object]) -> str:
        assert main([words[0], "-f", as_file(self._folder, *objects), *words[1:]]) == 0
        out, self.err = self._capsys.readouterr()
        return out

    def rounds(self, what: str, objects: list[Object]) -> list[Any]:
        return [each for round_ in self.json("decide", objects=objects)["rounds"] for each in round_[what]]

    def json(self, *words: str, objects: list[Object]) -> Any:
        return json.loads(self(*words, "-o", "json", objects=objects))


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path, capsys)


def shard(name: str, value: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    made = thing("kai.scheduler/v1", "SchedulingShard", name, spec={"partitionLabelValue": value, **spec})
    made["metadata"] |= {"annotations": annotations or {}, "uid": f"uid-{name}"}
    return made


def queue(name: str, pool: str = "") -> Object:
    share = {"quota": 0, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": {"gpu": share, "cpu": _ENDLESS, "memory": _ENDLESS}}
    made = thing("scheduling.run.ai/v2", "Queue", name, spec=spec)
    made["metadata"] |= {"labels": {NODE_POOL_LABEL: pool} if pool else {}, "uid": f"uid-{name}"}
    return made


def work(name: str, queue_name: str, pool: str = "", gpus: int = 1, on: str = "") -> Object:
    labels = {QUEUE_LABEL: queue_name} | ({NODE_POOL_LABEL: pool} if pool else {})
    status = {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"} if on else None
    made = pod(f"t/{name}", gpus, labels=labels, on=on, status=status)
    made["metadata"]["uid"] = f"uid-{name}"
    return made


def pool_node(name: str, pool: str = "", gpus: int = 4) -> Object:
    made = node(name, gpus)
    made["metadata"].setdefault("labels", {}).update({NODE_POOL_LABEL: pool} if pool else {})
    return made


def divided() -> list[Object]:
    return [
        *(shard("default"), shard("big", "big")),
        *(pool_node("plain"), pool_node("large", "big")),
        *(queue("a"), queue("b", "big")),
    ]


def test_pods_are_placed_in_their_pool(command: Command) -> None:
    objects = [*divided(), *(work(f"a{at}", "a") for at in range(2)), *(work(f"b{at}", "b", "big") for at in range(6))]
    nodes = {each["pod"]: each["node"] for each in command.rounds("placed", objects)}
    assert nodes == {"t/a0": "plain", "t/a1": "plain", **{f"t/b{at}": "large" for at in range(4)}}


def test_without_shards_the_labels_mean_nothing(command: Command) -> None:
    objects = [each for each in divided() if each["kind"] != "SchedulingShard"]
    assert len(command.rounds("placed", [*objects, *(work(f"a{at}", "a") for at in range(8))])) == 8


def test_a_pool_without_a_shard_is_named_by_why_with_those_that_have_one(command: Command) -> None:
    text = " ".join(command("why", "pod/lost", objects=[*divided(), work("lost", "b", "bigg")]).split())
    assert "NodePoolDoesNotExist" in text
    assert "No SchedulingShard has the node pool 'bigg'" in text
    assert f'In pod t/lost, metadata.labels["{NODE_POOL_LABEL}"]: big instead of bigg.' in text


def test_a_pod_in_another_pool_than_its_queue_is_told_the_label(command: Command) -> None:
    text = " ".join(command("why", "pod/lost", objects=[*divided(), work("lost", "b")]).split())
    assert "Queue 'b' is in node pool 'big'" in text
    assert f"{NODE_POOL_LABEL}=big" in text


def test_a_pod_that_fits_in_its_pool_no_more_is_not_offered_the_nodes_of_others(command: Command) -> None:
    objects = [*divided(), *(work(f"b{at}", "b", "big", on="large") for at in range(4)), work("late", "b", "big")]
    found = command.json("why", "pod/late", objects=objects)
    assert "plain" not in json.dumps(found.get("remedies", []))
    assert NODE_POOL_LABEL in json.dumps(found)


def test_a_wrong_value_of_a_shard_is_a_warning(command: Command) -> None:
    command("decide", objects=[*divided(), shard("x", "x", plugins={"gpupak": {"enabled": True}})])
    assert "SchedulingShard x: spec.plugins.gpupak: there is no plugin of that name" in command.err


@pytest.mark.parametrize(("k", "evicted"), [(1.0, 4), (0.0, 2)])
def test_the_recorded_use_of_a_shard_counts(command: Command, k: float, evicted: int) -> None:
    record = UsageRecord(UsageWindow())
    for now_s in (0.0, 3600.0):
        record.measure([QueueUse(("a",), (4000, 0, 0), 0.0)], (4000, 1, 1), now_s)
    usage = {"clientType": "prometheus"}
    objects = [
        shard("default", annotations={USAGE_ANNOTATION: usage_text(record)}, usageDBConfig=usage, kValue=k),
        *(pool_node("plain"), queue("a"), queue("b")),
        *(work(f"a{at}", "a", on="plain") for at in range(4)),
        *(work(f"b{at}", "b") for at in range(4)),
    ]
    assert len(command.rounds("evicted", objects)) == evicted
