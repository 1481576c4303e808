"""Dashboards of Grafana: each query has a result over recorded metrics, by Shoal's own evaluation and by Prometheus."""

from __future__ import annotations

import json
import math
import re
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from build.recorded_metrics import STEP_S, STEPS, texts_at
from build.recorded_prometheus import recorded_prometheus
from shoal.cli.dashboards import _NAMES
from shoal.cli.main import main
from shoal.policy.dashboards import DASHBOARDS
from shoal.policy.dashboards.grafana import Panel, config_map, grafana_json
from shoal.prometheus.promql.evaluation import Evaluation, check_supported
from shoal.prometheus.promql.parser import parsed
from shoal.prometheus.promql.scraped import TextReader
from shoal.prometheus.promql.series import SeriesStore
from shoal.prometheus.promql.trees import lookback_ms, selectors

QUERIES = [
    (board.name, panel, query.expression) for board in DASHBOARDS for panel in board.panels for query in panel.queries
]
IDS = [f"{name} {panel.title} {at}" for at, (name, panel, _) in enumerate(QUERIES)]
END_S = STEP_S * (STEPS - 1) + 7
"""Between samples: one at the begin of a range belongs to the range before Prometheus 3 only."""
_START_S = 1_700_000_000 // 3600 * 3600
Values = dict[tuple[tuple[str, str], ...], float]


def asked(expression: str) -> str:
    """With the variables of Grafana as they are when all is chosen."""
    return re.sub(r"\$(node|queue)\b", ".*", expression)


@pytest.fixture(scope="module")
def recorded() -> SeriesStore:
    kept: dict[str, int] = {}
    for _, _, expression in QUERIES:
        tree = parsed(asked(expression))
        for one in selectors(tree):
            kept[one.name] = max(kept.get(one.name, 0), lookback_ms(tree))
    store = SeriesStore(kept)
    reader = TextReader(store)
    for step in range(STEPS):
        store.scrape("all", step * STEP_S * 1000, reader.values("\n".join(texts_at(step))))
    return store


def evaluated(store: SeriesStore, expression: str) -> Values:
    found = Evaluation(store).vector(parsed(asked(expression)), END_S * 1000)
    return {((("__name__", one.name), *one.labels.pairs) if one.name else one.labels.pairs): one.value for one in found}


@pytest.mark.parametrize(("name", "panel", "expression"), QUERIES, ids=IDS)
def test_every_panel_has_a_result(recorded: SeriesStore, name: str, panel: Panel, expression: str) -> None:
    check_supported(parsed(asked(expression)))
    values = evaluated(recorded, expression).values()
    assert values, f"{name}: {panel.title}"
    assert not any(math.isnan(value) for value in values)


def test_worked_figures(recorded: SeriesStore) -> None:
    by_panel = {(name, panel.title): expression for name, panel, expression in QUERIES}
    held = evaluated(recorded, by_panel["cost", "Held GPUs by namespace"])
    assert held == {(("namespace", "team-a"),): 3 * 6.5, (("namespace", "team-b"),): 0.5 * 2.5}
    assert list(evaluated(recorded, by_panel["cost", "Free GPUs per hour"]).values()) == [4 * 6.5 + 2.5 - 19.5 - 1.25]
    spot = list(evaluated(recorded, by_panel["cost", "Spot part of the price"]).values())
    assert spot == pytest.approx([100 * 2.5 / 28.5])
    borrowed = evaluated(recorded, by_panel["queues", "Borrowed GPUs"])
    assert borrowed == {(("cluster_queue", "silver"),): 2}
    # The GPUs of team-a are used to 60, 61 and 62 %, the instance of team-b to 40 %, of 0.5 * 2.5.
    idle = evaluated(recorded, by_panel["cost", "Idle part of held GPUs"])
    assert idle[(("namespace", "team-b"),)] == pytest.approx(0.6 * 1.25)
    assert idle[(("namespace", "team-a"),)] == pytest.approx(13 * 0.395 + 6.5 * 0.38)
    assert set(evaluated(recorded, by_panel["fleet", "Utilisation by namespace"]).values()) == {61, 40}
    assert evaluated(recorded, by_panel["mig", "Instances without a pod"]) == {
        (("GPU_I_PROFILE", "3g.40gb"),): 1,
        (("GPU_I_PROFILE", "1g.10gb"),): 1,
    }


def test_every_metric_is_on_the_page_of_metrics() -> None:
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    used = {
        one.name.removesuffix("_bucket") for _, _, expression in QUERIES for one in selectors(parsed(asked(expression)))
    }
    assert {name for name in used if f"`{name}`" not in page} == set()
    assert len(used) > 25


@pytest.mark.parametrize("board", DASHBOARDS, ids=lambda one: one.name)
def test_panels_have_places_of_their_own_and_every_variable_is_declared(board: Any) -> None:
    found = grafana_json(board)
    places = [panel["gridPos"] for panel in found["panels"]]
    taken = {
        (x, y)
        for one in places
        for x in range(one["x"], one["x"] + one["w"])
        for y in range(one["y"], one["y"] + one["h"])
    }
    assert len(taken) == sum(one["w"] * one["h"] for one in places)
    assert all(one["x"] + one["w"] <= 24 for one in places)
    assert len({panel["id"] for panel in found["panels"]}) == len(places)
    declared = {one["name"] for one in found["templating"]["list"]}
    assert set(re.findall(r"\$\{?(\w+)", json.dumps(found["panels"]).replace("$__", ""))) <= declared
    assert all(panel["datasource"]["uid"] == "${datasource}" for panel in found["panels"])


def test_the_command_prints_one_dashboard_and_config_maps_for_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert {one.name for one in DASHBOARDS} == set(_NAMES)
    assert main(["dashboards", "mig"]) == 0
    assert json.loads(capsys.readouterr().out)["uid"] == "shoal-mig"
    assert main(["dashboards", "-o", "objects", "-n", "grafana"]) == 0
    text = capsys.readouterr().out
    assert text.count("kind: ConfigMap") == 5
    assert text.count("namespace: grafana") == 5
    made = config_map(DASHBOARDS[0], "grafana")
    assert json.loads(made["data"]["shoal-fleet.json"]) == grafana_json(DASHBOARDS[0])
    assert main(["dashboards"]) == 2
    assert "--folder DIR" in capsys.readouterr().err
    assert main(["dashboards", "mag"]) == 2
    assert "mig" in capsys.readouterr().err


def test_files_are_written_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboards", "--folder", str(tmp_path / "new")]) == 0
    assert sorted(one.name for one in (tmp_path / "new").iterdir()) == sorted(f"{name}.json" for name in _NAMES)
    assert json.loads((tmp_path / "new" / "cost.json").read_text())["title"] == "Shoal / Cost"
    (tmp_path / "file").write_text("")
    assert main(["dashboards", "cost", "--folder", str(tmp_path / "file")]) == 2
    assert "cannot be made" in capsys.readouterr().err


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real one over the same recorded metrics."""
    lines: dict[str, list[str]] = {}
    for step in range(STEPS):
        for line in texts_at(step):
            lines.setdefault(line.partition("{")[0], []).append(f"{line} {_START_S + step * STEP_S}")
    text = "".join("\n".join(of_name) + "\n" for of_name in lines.values())
    with recorded_prometheus(tmp_path_factory.mktemp("prometheus"), text) as url:
        yield url


@pytest.mark.external("prometheus", "promtool")
@pytest.mark.parametrize(("name", "panel", "expression"), QUERIES, ids=IDS)
def test_every_panel_has_the_same_result_in_prometheus(
    prometheus: str, recorded: SeriesStore, name: str, panel: Panel, expression: str
) -> None:
    query = urllib.parse.urlencode({"query": asked(expression), "time": _START_S + END_S})
    with urllib.request.urlopen(f"{prometheus}/api/v1/query?{query}", timeout=30) as answer:  # noqa: S310 - of loopback
        found = json.load(answer)["data"]["result"]
    assert found, f"{name}: {panel.title}"
    expected = {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in found}
    values = {tuple(sorted(key)): value for key, value in evaluated(recorded, expression).items()}
    assert values == pytest.approx(expected, rel=1e-9), f"{name}: {panel.title}"
