"""A table has the same rows as HTML and as CSV."""

import csv
import io

import pytest

from shoal.web.markup import Markup
from shoal.web.tables import MOST_ROWS, DataTable, Heading, TableCell, csv_of, table_markup


def table(*rows: list[TableCell]) -> DataTable:
    headings = [Heading("name"), Heading("GPUs", is_number=True)]
    return DataTable("nodes", "Nodes", "shoal top", headings, rows, "There are no nodes.")


def test_a_table_shows_the_command_that_prints_it() -> None:
    drawn = table_markup(table([TableCell("n-0"), TableCell("8")]), "/")
    assert "<code>shoal top</code>" in drawn
    assert 'data-copy="shoal top"' in drawn
    assert 'href="/?csv=nodes"' in drawn


def test_a_table_without_rows_is_a_sentence() -> None:
    assert "There are no nodes." in table_markup(table(), "/")
    assert "<table" not in table_markup(table(), "/")


def test_the_csv_has_all_rows_and_the_page_the_first_ones() -> None:
    rows = [[TableCell(f"n-{number}"), TableCell("8")] for number in range(MOST_ROWS + 7)]
    drawn = table_markup(table(*rows), "/")
    assert drawn.count("<tr>") == MOST_ROWS + 1
    assert "and 7 more" in drawn
    assert len(csv_of(table(*rows)).splitlines()) == MOST_ROWS + 8


def test_commas_and_quotes_of_cells_survive_the_csv() -> None:
    written = csv_of(table([TableCell('a "b", c'), TableCell("1,024")]))
    assert list(csv.reader(io.StringIO(written))) == [["name", "GPUs"], ['a "b", c', "1,024"]]


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3"])
def test_no_cell_of_the_csv_is_a_formula(text: str) -> None:
    assert f"'{text}" in csv_of(table([TableCell(text), TableCell("1")])).replace('""', '"')


@pytest.mark.parametrize("text", [" =1+1", "\u00a0@SUM(A1)", "\uff1d1+1", "\uff0bA1", "\uff0dA1", "\uff20A1"])
def test_blanks_and_full_width_signs_before_a_formula_are_seen_through(text: str) -> None:
    assert f"'{text}" in csv_of(table([TableCell(text), TableCell("1")]))


def test_a_semicolon_in_a_cell_begins_no_formula_where_it_separates_columns() -> None:
    written = csv_of(table([TableCell("ok;=HYPERLINK(A1)"), TableCell("1")])).splitlines()[1]
    assert next(csv.reader([written], delimiter=";"))[0].startswith("ok;=HYPERLINK(A1)")


def test_a_negative_number_stays_a_number() -> None:
    written = csv_of(table([TableCell("n"), TableCell("-1.5")]))
    assert list(csv.reader(io.StringIO(written)))[1] == ["n", "-1.5"]


def test_a_drawing_takes_the_place_of_the_text_on_the_page_alone() -> None:
    shown = table([TableCell("n"), TableCell("50 %", drawing=Markup("<svg></svg>"))])
    assert "<svg></svg>" in table_markup(shown, "/")
    assert "50 %" in csv_of(shown)
