"""The table of Kueue's feature gates says what the settings are without a configuration."""

from __future__ import annotations

from docs.pages import ROOT
from shoal.api.kueue import Configuration
from shoal.engine.from_api.queues.settings import settings_of
from shoal.engine.queues.settings import Settings
from shoal.units.errors import Where

PAGE = ROOT / "docs" / "compatibility.md"
_HEAD = "| gate | Kueue | here | what it does |"


def _rows() -> list[list[str]]:
    table = PAGE.read_text(encoding="utf-8").split(_HEAD)[1].split("\n\n")[0]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| `")
    ]


def test_the_table_names_all_gates_that_are_on() -> None:
    assert {gate.strip("`") for gate, _, here, _ in _rows() if here == "on"} == Settings().gates


def test_a_gate_that_is_known_here_has_kueues_value() -> None:
    assert [gate for gate, kueue, here, _ in _rows() if here != "not supported" and here != kueue] == []
    assert len(_rows()) > len(Settings().gates)


def test_a_configuration_without_gates_has_those_that_are_on() -> None:
    assert settings_of(Configuration(), Where()).gates == Settings().gates
