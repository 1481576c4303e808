"""The screens of the dashboard as they were last reviewed; `python -m tools.dashboard_screens` writes them anew."""

from __future__ import annotations

import pytest
from tools.dashboard_screens import KEYS, PICTURE, SCREENS, SIZES, picture, screen, screen_names, screen_text


@pytest.mark.parametrize("name", sorted(screen_names()))
def test_a_screen_is_as_it_was_reviewed(name: str) -> None:
    assert (SCREENS / name).read_text(encoding="utf-8") == screen_text(name)


def test_no_file_is_left_of_a_screen_that_is_no_longer_drawn() -> None:
    assert {path.name for path in SCREENS.iterdir()} == set(screen_names())


def test_the_picture_in_the_docs_is_the_screen_of_nodes() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture()


@pytest.mark.parametrize("size", [*SIZES, (40, 12), (60, 15)])
@pytest.mark.parametrize("name", sorted(KEYS))
def test_every_screen_fits_its_terminal(name: str, size: tuple[int, int]) -> None:
    lines = screen(name, size).split("\n", allow_blank=True)
    assert len(lines) == size[1] - 1
    assert max(line.cell_len for line in lines) <= size[0]


@pytest.mark.parametrize("size", SIZES)
def test_a_filter_that_nodes_match_is_not_called_one_that_no_row_contains(size: tuple[int, int]) -> None:
    text = screen("filtered", size).plain
    assert "p4d-24xlarge-0" in text
    assert "No row contains" not in text
    assert "Nothing that waits contains 'p4d'." in text
    assert "MESSAGE" not in text
