"""Figures as text: what people's Prometheus reads, in both of its formats."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from build.promtool import faults
from shoal.prometheus.exposition import OPEN, PLAIN, form_for, text_of
from shoal.prometheus.families import MetricHead
from shoal.prometheus.registry import Registry


def _filled() -> Registry:
    registry = Registry()
    registry.counter("eggs_total", 'Eggs.\nAll \\ of "them".', ("colour",)).of('br"o\\wn\n').inc(2)
    registry.gauge("hens", "Hens now.").of().set(-1.5)
    hatched = registry.histogram("hatching_seconds", "How long hatching took.", (0.5, 1.0, 20.0), ("breed",)).of(
        "leghorn"
    )
    for seconds in (0.5, 0.7, 3.0, 90.0):
        hatched.observe(seconds)
    registry.reads(
        MetricHead("gauge", "room", "Room for hens.", ("yard",)), lambda: [(("a",), math.inf), (("b",), 1e20)]
    )
    return registry


def test_the_plain_format_is_what_prometheus_reads() -> None:
    assert text_of(_filled().read()).decode() == (
        '# HELP eggs_total Eggs.\\nAll \\\\ of "them".\n'
        "# TYPE eggs_total counter\n"
        'eggs_total{colour="br\\"o\\\\wn\\n"} 2\n'
        "# HELP hatching_seconds How long hatching took.\n"
        "# TYPE hatching_seconds histogram\n"
        'hatching_seconds_bucket{breed="leghorn",le="0.5"} 1\n'
        'hatching_seconds_bucket{breed="leghorn",le="1"} 2\n'
        'hatching_seconds_bucket{breed="leghorn",le="20"} 3\n'
        'hatching_seconds_bucket{breed="leghorn",le="+Inf"} 4\n'
        'hatching_seconds_sum{breed="leghorn"} 94.2\n'
        'hatching_seconds_count{breed="leghorn"} 4\n'
        "# HELP hens Hens now.\n"
        "# TYPE hens gauge\n"
        "hens -1.5\n"
        "# HELP room Room for hens.\n"
        "# TYPE room gauge\n"
        'room{yard="a"} +Inf\n'
        'room{yard="b"} 1e+20\n'
    )


def test_openmetrics_names_counters_without_their_end_and_says_where_it_ends() -> None:
    lines = text_of(_filled().read(), OPEN).decode().split("\n")
    assert lines[0] == '# HELP eggs Eggs.\\nAll \\\\ of \\"them\\".'
    assert lines[1:3] == ["# TYPE eggs counter", 'eggs_total{colour="br\\"o\\\\wn\\n"} 2']
    assert 'hatching_seconds_bucket{breed="leghorn",le="1.0"} 2' in lines
    assert lines[-2:] == ["# EOF", ""]


@pytest.mark.external("promtool")
def test_promtool_is_content() -> None:
    assert faults(text_of(_filled().read())) == ""


@pytest.mark.external("promtool")
def test_promtool_would_say_so() -> None:
    assert "parsing error" in faults(b'eggs{colour="brown} 2\n')


_WORDS = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n{}='), max_size=12)


@settings(max_examples=examples(30), deadline=None)
@given(st.dictionaries(_WORDS, st.floats(allow_nan=True), max_size=5))
def test_whatever_labels_say_they_are_read_back_as_they_were(found: dict[str, float]) -> None:
    registry = Registry()
    family = registry.gauge("things", "Things.", ("name",))
    for name, number in found.items():
        family.of(name).set(number)
    lines = text_of(registry.read()).decode().split("\n")[2:-1] if found else []
    assert [_unescaped(line) for line in lines] == list(found)


def _unescaped(line: str) -> str:
    """The value between the first quote and the last, by the format's own rules."""
    inside = line[line.index('"') + 1 : line.rindex('"')]
    letters = iter(inside)
    return "".join({"n": "\n"}.get(after := next(letters), after) if letter == "\\" else letter for letter in letters)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", PLAIN),
        ("*/*", PLAIN),
        ("text/html,*/*;q=0.8", PLAIN),
        ("application/openmetrics-text", OPEN),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8", OPEN),
        ("application/openmetrics-text;version=2.0.0,text/plain;q=0.3", PLAIN),
        ("application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2", OPEN),
        ("text/plain;q=0.9,application/openmetrics-text;q=0.1", PLAIN),
        ("application/openmetrics-text;q=much", PLAIN),
    ],
)
def test_who_asks_for_openmetrics_gets_it(accept: str, form: str) -> None:
    assert form_for(accept) == form
