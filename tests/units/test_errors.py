"""An error is one line that says where, what and how to put it right."""

import pickle

import pytest

from shoal.units.errors import (
    BugError,
    ConflictError,
    ShoalError,
    TemporaryError,
    UserError,
    Where,
    excerpt,
)

PLACES = {
    "nothing known, nothing said": (Where(), ""),
    "a file": (Where("pods.yaml"), "pods.yaml"),
    "a document of a file": (Where("pods.yaml", 2), "pods.yaml: document 2"),
    "an object in a document": (
        Where("pods.yaml", 2, "Pod team-a/train", "spec.nodeName"),
        "pods.yaml: document 2 (Pod team-a/train): spec.nodeName",
    ),
    "an object that came from nowhere in particular": (Where(obj="Node n1"), "Node n1"),
    "a cell of a table": (Where("pods.csv", row=17, path="gpu_milli"), "pods.csv: row 17: gpu_milli"),
}


@pytest.mark.parametrize(("where", "text"), PLACES.values(), ids=PLACES)
def test_a_place_reads_from_the_outside_in(where: Where, text: str) -> None:
    assert str(where) == text


STEPS = {
    "the first step stands alone": (Where().below("spec"), "spec"),
    "a field follows a dot": (Where(path="spec").below("taints"), "spec.taints"),
    "an index follows nothing": (Where(path="taints").below("[0]"), "taints[0]"),
    "a plain key follows a dot": (Where(path="limits").key("cpu"), "limits.cpu"),
    "any other key is bracketed": (Where(path="limits").key("nvidia.com/gpu"), "limits[nvidia.com/gpu]"),
    "no step, no change": (Where(path="spec").below(""), "spec"),
}


@pytest.mark.parametrize(("where", "path"), STEPS.values(), ids=STEPS)
def test_paths_grow_step_by_step(where: Where, path: str) -> None:
    assert where.path == path


def test_a_user_error_says_where_what_and_how_to_fix_it() -> None:
    where = Where("a.yaml", 2, "Pod team-a/train", "spec.containers[0].resources.limits.cpu")
    error = UserError("is negative", where=where, fix="write 2")
    assert str(error) == (
        "a.yaml: document 2 (Pod team-a/train): spec.containers[0].resources.limits.cpu: is negative; write 2"
    )


def test_whatever_the_input_held_the_message_is_one_printable_line() -> None:
    error = UserError("bad\nvalue \x1b[31m\t!", where=Where("a\nb.yaml"), fix="try\r\nagain")
    assert str(error).isprintable()


def test_a_complaint_can_be_placed_later_by_whoever_knows_the_file() -> None:
    error = UserError("is negative", fix="write 2").at(Where("a.yaml"))
    assert str(error) == "a.yaml: is negative; write 2"


def test_long_input_is_quoted_in_part() -> None:
    assert len(excerpt("x" * 1000)) < 70
    assert excerpt("short") == '"short"'


def test_a_bug_tells_its_story_line_by_line() -> None:
    assert str(BugError("two owners", story=("a bound", "b bound"))) == "two owners\n  a bound\n  b bound"


@pytest.mark.parametrize(
    "error",
    [
        UserError("u", where=Where("f", 1, path="p"), fix="x"),
        ConflictError("c"),
        TemporaryError("t", 2.5),
        BugError("b", story=("s",)),
    ],
    ids=["user", "conflict", "temporary", "bug"],
)
def test_errors_survive_the_way_to_another_process(error: ShoalError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)
