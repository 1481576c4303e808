"""What a Prometheus server may do wrong: it is named, use is unknown, and the rest is shown."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from build.fake_prometheus import Answer, FakePrometheus, serving
from shoal.cost.records import DeviceShare, Holder, Holding
from shoal.prometheus.promql.series import SeriesStore
from shoal.store.history.history import UsageHistory
from shoal.store.history.ledger import LedgerChanges
from shoal.store.history.memory_tables import MemoryTables
from shoal.store.history.prometheus_queries import rows_of, slots_of
from shoal.store.history.prometheus_samples import prometheus_reader
from shoal.store.history.prometheus_server import PrometheusAddress, PrometheusServer
from shoal.store.history.samples import DAY_MS
from shoal.units.calendar_windows import HOUR_MS, TimeWindow
from shoal.units.errors import TemporaryError, UserError

START = 1_790_812_800_000


@pytest.fixture
def fake() -> Iterator[FakePrometheus]:
    made = FakePrometheus(SeriesStore({}))
    with serving(made):
        yield made


def _history(address: PrometheusAddress, clock: Callable[[], float] = lambda: 0.0) -> UsageHistory:
    tables = MemoryTables()
    held = Holding(Holder("pod", "n"), "m", START, START, None, (DeviceShare("GPU-a"),))
    UsageHistory(tables).ledger.write(LedgerChanges(START + 60 * DAY_MS, holdings={"pod": held}))
    return UsageHistory(tables, reader=prometheus_reader(address, clock))


def _answered(values: dict[int, str], **labels: str) -> Answer:
    series = {"metric": {"UUID": "GPU-a", **labels}, "values": [[at / 1000, text] for at, text in values.items()]}
    return 200, {}, json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [series]}}).encode()


WRONG: dict[str, tuple[Answer, str]] = {
    "an error of the server": ((503, {}, b'{"status":"error","error":"too\\nbusy"}'), "status 503: too busy"),
    "no text": ((500, {}, b"<html>"), "status 500"),
    "a redirect": ((302, {"Location": "http://127.0.0.1:1/"}, b""), "redirects are not followed"),
    "another server": ((200, {}, b"<html>hello</html>"), "answers as no Prometheus server does"),
    "an answer of another form": ((200, {}, b'{"data":{"result":[{"values":[1]}]}}'), "as no Prometheus server does"),
    "half an answer": ((200, {"Content-Length": "900"}, b'{"data"'), "cannot be asked"),
}


@pytest.mark.parametrize(("answer", "words"), WRONG.values(), ids=WRONG.keys())
def test_an_answer_that_is_wrong_is_named_and_use_is_unknown(fake: FakePrometheus, answer: Answer, words: str) -> None:
    fake.answer = lambda *_: answer
    history = _history(PrometheusAddress(fake.url, request_s=2.0))
    records = history.records(START, START + HOUR_MS)
    assert [one.uses for one in records.holdings] == [()]
    (note,) = history.measured.notes()
    assert words in note
    assert fake.url in note
    assert "of the use of GPUs is missing" in note


def test_a_server_that_is_not_there_is_named_once(fake: FakePrometheus) -> None:
    history = _history(PrometheusAddress("http://127.0.0.1:1"))
    assert history.measured.uses(START, START + 30 * DAY_MS) == {}
    assert history.measured.series("util", START, START + HOUR_MS).devices == []
    (note,) = history.notes(START + 60 * DAY_MS, START + 60 * DAY_MS)
    assert "http://127.0.0.1:1 cannot be asked: [Errno" in note


def test_a_server_that_is_slow_is_not_asked_for_longer_than_the_limit(fake: FakePrometheus) -> None:
    moments = iter(range(0, 1000, 20))
    fake.answer = lambda *_: _answered({})
    history = _history(PrometheusAddress(fake.url, request_s=100.0), lambda: float(next(moments)))
    assert history.measured.uses(START, START + 30 * DAY_MS) == {}
    assert len(fake.asked) < 10
    assert re.search("took longer than 25 s|did not answer in 5 s", history.measured.notes()[0])


def test_a_server_that_sends_slowly_is_given_up(fake: FakePrometheus) -> None:
    moments = iter((0.0, 3.0))
    server = PrometheusServer(PrometheusAddress(fake.url), lambda: next(moments))
    fake.answer = lambda *_: (200, {}, b"x" * 100)
    with pytest.raises(TemporaryError, match="did not answer in 2 s"):
        server.ask("query_range", {}, 2.0)


def test_warnings_of_an_answer_that_is_not_complete_are_shown(fake: FakePrometheus) -> None:
    _, _, body = _answered({START + 300_000 - 1: "0.5"})
    answer = {**json.loads(body), "warnings": ["store gateway\nis away"]}
    fake.answer = lambda *_: (200, {}, json.dumps(answer).encode())
    history = _history(PrometheusAddress(fake.url))
    assert len(history.measured.uses(START, START + HOUR_MS)) == 1
    assert f"{fake.url} warns: store gateway is away; some use may be missing" in history.measured.notes()


def test_samples_that_begin_within_the_window_are_told(fake: FakePrometheus) -> None:
    fake.answer = lambda *_: _answered({START + 30 * 60_000 - 1: "0.5"})
    history = _history(PrometheusAddress(fake.url))
    ((use,),) = history.measured.uses(START, START + HOUR_MS).values()
    assert use.start_ms == START + 25 * 60_000
    assert history.measured.notes() == [
        f"{fake.url} has samples of GPUs from 2026-10-01T00:25:00Z: use before is unknown"
    ]
    fake.answer = lambda *_: _answered({})
    history = _history(PrometheusAddress(fake.url))
    assert history.measured.uses(START, START + HOUR_MS) == {}
    assert history.measured.notes() == [f"{fake.url} has no samples of GPUs in the window: use is unknown"]


def test_the_token_is_read_from_its_file_and_is_in_no_message(fake: FakePrometheus, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret-one\n")
    server = PrometheusServer(PrometheusAddress(f"{fake.url}/prom/", file), lambda: 0.0)
    with pytest.raises(TemporaryError) as raised:
        server.ask("query_range", {"query": "up"}, 5.0)
    assert "secret" not in str(raised.value)
    file.write_text("secret-two\n")
    with pytest.raises(TemporaryError):
        server.ask("query_range", {"query": "up"}, 5.0)
    assert [path.partition("?")[0] for path, _ in fake.asked] == ["/prom/api/v1/query_range"] * 2
    assert [headers["Authorization"] for _, headers in fake.asked] == ["Bearer secret-one", "Bearer secret-two"]


def test_a_file_of_the_token_that_is_gone_is_named_and_use_is_unknown(fake: FakePrometheus, tmp_path: Path) -> None:
    history = _history(PrometheusAddress(fake.url, tmp_path / "token"))
    assert [one.uses for one in history.records(START, START + HOUR_MS).holdings] == [()]
    (note,) = history.measured.notes()
    assert f"{tmp_path / 'token'}: cannot be read" in note
    assert fake.asked == []


def test_matchers_are_part_of_every_selector(fake: FakePrometheus) -> None:
    fake.answer = lambda *_: _answered({})
    history = _history(PrometheusAddress(fake.url, selector='job="dcgm"'))
    history.measured.uses(START, START + HOUR_MS)
    history.measured.series("power", START, START + 12 * HOUR_MS)
    for path, _ in fake.asked:
        assert path.count("DCGM_FI_") == path.count("job%3D%22dcgm%22")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("prometheus:9090", "not an HTTP address"),
        ("ftp://host", "not an HTTP address"),
        ("http://host:x", "not an HTTP address"),
        ("http://host/?a=1", "not an HTTP address"),
        ("https://user:password@host", "contains credentials"),
    ],
)
def test_an_address_that_is_none_is_refused(url: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        PrometheusAddress(url).check()
    assert "password" not in str(raised.value)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    with pytest.raises(UserError, match="empty: has no token"):
        PrometheusAddress("http://host", empty).check()
    with pytest.raises(UserError, match="gone: cannot be read"):
        PrometheusAddress("http://host", tmp_path / "gone").check()
    with pytest.raises(UserError, match="empty: cannot be read as certificates"):
        PrometheusAddress("https://host", authority_file=empty).check()
    assert PrometheusAddress("https://host").trusted().verify_mode is ssl.CERT_REQUIRED


def test_rows_of_hostile_answers_are_bounded_by_the_slots() -> None:
    slots = slots_of(TimeWindow(START, START + HOUR_MS), finest_ms=300_000)
    values = {START - 1: "1", START + 300_000 - 1: "+Inf", START + 600_000 - 1: "0.5", START + 10 * HOUR_MS: "1"}
    _, _, body = _answered(values, GPU_I_ID="x" * 10)
    (row,), warnings = rows_of(body, slots)
    assert [None if one != one else float(one) for one in row.values] == [None, 0.5, *[None] * 10]
    assert not warnings
