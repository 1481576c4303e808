"""What a Prometheus server is asked about the use of KAI's queues, and what its answers mean."""

from __future__ import annotations

from random import Random

import pytest

from build.depth import seeds
from build.fake_prometheus import FakePrometheus
from shoal.engine.queues.disciplines.kai.division import ShareRequest, divide
from shoal.engine.queues.disciplines.kai.usage_record import CRON, TUMBLING, Usage, UsageWindow
from shoal.engine.queues.disciplines.kai.usage_source import ALLOCATED, UsageSource, questions, usage_of
from shoal.prometheus.promql.series import LabelledValue, SeriesStore
from shoal.units.schedules import read_schedule

_MINUTE_S, _START_S = 60, 1_767_225_600
_GPUS, _CORES, _MEMORY = ALLOCATED
_NODES = "kube_node_status_capacity"
_CAPACITY = (("nvidia_com_gpu", 8.0), ("cpu", 64.0), ("memory", 1024.0))


class ScrapedServer:
    """Is scraped once a minute."""

    def __init__(self) -> None:
        self.store = SeriesStore(dict.fromkeys((*ALLOCATED, _NODES), 10**9))
        self.now_s = _START_S

    def scrape(self, held: dict[str, float], source: str = "shoal") -> None:
        """GPUs of queues in one minute; the nodes have eight, and cores and memory in proportion."""
        of = self.store.label_sets.of
        values = [
            LabelledValue(metric, of({"queue_name": queue, "pod": source}), gpus * factor)
            for queue, gpus in held.items()
            for metric, factor in ((_GPUS, 1), (_CORES, 8), (_MEMORY, 128))
        ]
        self.store.scrape(source, self.now_s * 1000, values)
        nodes = [
            LabelledValue(_NODES, of({"resource": name, "node": node}), amount / 2)
            for name, amount in _CAPACITY
            for node in "ab"
        ]
        self.store.scrape("nodes", self.now_s * 1000, nodes)

    def usage(self, window: UsageWindow) -> Usage:
        fake = FakePrometheus(self.store)
        asked = questions(UsageSource("http://p"), window, self.now_s)
        return usage_of([fake.evaluated("/api/v1/query_range", {**one, "timeout": "1000ms"})[2] for one in asked])


@pytest.mark.parametrize("half_life_s", [0.0, 900.0], ids=["without decay", "with decay"])
def test_use_is_the_decayed_sum_of_each_minute_divided_by_that_of_the_capacity(half_life_s: float) -> None:
    for seed in seeds(3):
        draw, server = Random(seed), ScrapedServer()
        minutes = [{name: float(draw.randint(0, 4)) for name in "ab"} for _ in range(draw.randint(5, 60))]
        size = draw.randint(2, 40)
        for held in minutes:
            server.now_s += _MINUTE_S
            server.scrape(held)
        inside = minutes[-size:]
        weights = [0.5 ** (60 * age / half_life_s) if half_life_s else 1.0 for age in range(len(inside))][::-1]
        found = server.usage(UsageWindow(size_s=size * 60.0, half_life_s=half_life_s))
        for name in "ab":
            used = sum(weight * held[name] for weight, held in zip(weights, inside, strict=True))
            assert found[name] == pytest.approx([used / 8 / sum(weights)] * 3), seed


def test_two_processes_at_one_time_count_once_and_one_after_the_other_in_full() -> None:
    server = ScrapedServer()
    for minute in range(4):
        server.now_s += _MINUTE_S
        for source in ("old",) if minute == 0 else ("old", "new") if minute < 3 else ("new",):
            server.scrape({"a": 4}, source)
    assert server.usage(UsageWindow(size_s=240))["a"] == pytest.approx([0.5] * 3)


WINDOWS = {
    "one that tumbles from a start": UsageWindow(TUMBLING, 600.0, first_s=_START_S - 300.0),
    "one of a schedule": UsageWindow(CRON, schedule=read_schedule("*/5 * * * *")),
}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_only_what_was_used_since_the_window_began_counts(window: UsageWindow) -> None:
    server = ScrapedServer()
    for minute in range(1, 9):
        server.now_s += _MINUTE_S
        server.scrape({"before": 8.0} if minute <= 5 else {"after": 8.0})
    assert server.usage(window).get("after", (0.0,))[0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>", "cannot be read"),
        (b'{"status":"success","data":{"result":[{"metric":{},"values":[[1,"x"]]}]}}', "cannot be read"),
        (b'{"status":"success","data":{"result":[]}}', "knows no capacity of nodes"),
        (b'{"status":"success","data":{"result":[{"metric":{},"values":[[1,"NaN"]]}]}}', "knows no capacity of nodes"),
    ],
)
def test_an_answer_that_says_nothing_is_no_use_of_zero(answer: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        usage_of([answer] * 6)


def _sum_of(value: str, label: str = "queue_name") -> bytes:
    return f'{{"data":{{"result":[{{"metric":{{"{label}":"a"}},"values":[[1,"{value}"]]}}]}}}}'.encode()


def test_series_without_the_label_of_queues_are_no_use_of_zero() -> None:
    with pytest.raises(ValueError, match="no label queue_name"):
        usage_of([_sum_of("1", "queue")] * 3 + [_sum_of("4")] * 3)


def test_fair_shares_can_be_worked_out_from_sums_of_any_size() -> None:
    usage = usage_of([_sum_of("1e308")] * 3 + [_sum_of("1e-308")] * 3)["a"]
    queues = [ShareRequest("a", 4, usage=usage[0]), ShareRequest("b", 4)]
    assert divide(4, queues, k=1.0).shares == {"a": 0, "b": 4}
