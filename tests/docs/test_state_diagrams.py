"""The page of state machines draws the tables in the code."""

from __future__ import annotations

from tools.state_diagrams import PAGE, diagram, page


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


def test_a_diagram_lists_each_transition_with_its_label() -> None:
    drawn = diagram([("A", "B", "Stop"), ("[*]", "A", "")])
    assert drawn == "\n```mermaid\nstateDiagram-v2\n    A --> B: Stop\n    [*] --> A\n```\n"
