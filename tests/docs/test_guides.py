"""Every command of a guide works as it is written, and a cluster that does not start stops the reader."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.guides import GUIDES, clone_with_programs, commands, differences, marked, program, run_in_shell
from docs.pages import ROOT, name

README = ROOT / "README.md"
EXAMPLES = sorted((ROOT / "examples" / "how-to").iterdir())
_SAFE = "|| echo 'export KUBECONFIG=/dev/null; false')"


def first_block(page: Path) -> list[str]:
    """The lines of the first block of commands."""
    found = re.search(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1].splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_the_commands_of_a_guide_work_in_the_order_of_the_page(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    programs = clone_with_programs(tmp_path)
    done = run_in_shell(marked(text), tmp_path, programs)
    end = run_in_shell(["shoal down"], tmp_path, programs)
    assert (done.returncode, end.returncode) == (0, 0), done.stdout
    assert "Traceback" not in done.stdout
    assert differences(text, done.stdout) == [], done.stdout


@pytest.mark.slow
def test_the_five_minutes_with_the_embedded_cluster_print_what_the_page_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    text = page[page.index("\n## Five minutes\n") : page.index("\n## What runs\n")]
    programs = clone_with_programs(tmp_path)
    done = run_in_shell(marked(text), tmp_path, programs)
    end = run_in_shell(["shoal down"], tmp_path, programs)
    assert (done.returncode, end.returncode) == (0, 0), done.stdout
    assert differences(text, done.stdout) == [], done.stdout


_SHOWN = """
```console
$ kubectl get pods -o wide
NAME               READY   AGE   IP             NODE
training-0-cv8ws   1/1     3s    198.18.64.1    p5-48xlarge-0
...
training-2-mf5fx   1/1     3s    198.18.64.3    p5-48xlarge-1
```
"""
_PRINTED = """NAME               READY   AGE     IP              NODE
training-0-2xk4w   1/1     1m3s    198.18.64.71    p5-48xlarge-0
training-1-9bb7d   1/1     1m3s    198.18.64.72    p5-48xlarge-0
training-2-qq6gw   1/1     1m3s    198.18.64.73    p5-48xlarge-1
"""


def test_a_sample_is_compared_without_what_differs_from_run_to_run() -> None:
    assert differences(_SHOWN, f"{marked(_SHOWN)[0].removeprefix('echo ')}\n{_PRINTED}") == []


@pytest.mark.parametrize(
    "changed",
    [
        _PRINTED.replace("xlarge-1\n", "xlarge-0\n"),
        _PRINTED.replace("training-2", "training-3"),
        _PRINTED.replace("NODE", "HOST"),
        "",
    ],
)
def test_a_sample_that_the_command_does_not_print_would_be_noticed(changed: str) -> None:
    assert differences(_SHOWN, f"{marked(_SHOWN)[0].removeprefix('echo ')}\n{changed}") != []


@pytest.mark.parametrize("page", GUIDES, ids=name)
def test_a_guide_starts_its_cluster_first_and_ends_it_last(page: Path) -> None:
    first, *_, last = commands(page)
    # In memory, or in a folder of its own: the objects of another guide would be in the way.
    started = re.match(r'eval "\$\(shoal up --detach --(?:memory|state (\S+)) ', first)
    assert started is not None
    assert last == (f"shoal down --state {started[1]}" if started[1] else "shoal down")


@pytest.mark.parametrize("page", [*GUIDES, README, ROOT / "docs" / "cluster.md"], ids=name)
def test_every_start_of_a_cluster_leads_nowhere_if_it_fails(page: Path) -> None:
    starts = re.findall(r'eval "\$\(shoal up.*', page.read_text(encoding="utf-8"))
    assert starts
    assert [line for line in starts if _SAFE not in line] == []


def test_no_kubectl_reaches_a_cluster_if_shoal_up_fails(tmp_path: Path) -> None:
    programs = clone_with_programs(tmp_path)
    program(programs / "shoal", "exit 1")
    start, *_ = commands(ROOT / "docs" / "how-to" / "jobs.md")
    lines = ["set +e", "export KUBECONFIG=production", start, 'echo "now: $?, $KUBECONFIG"']
    assert "\nnow: 1, /dev/null\n" in run_in_shell(lines, tmp_path, programs).stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.name))
def test_every_example_names_the_guide_that_applies_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    heading = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
    guide = re.search(r"Guide: (docs/how-to/[a-z-]+\.md)\.", heading)
    assert guide is not None
    assert any(f"examples/how-to/{path.name}" in line for line in commands(ROOT / guide[1]))


@pytest.mark.slow
def test_the_commands_of_the_readme_work_in_the_order_of_the_page(tmp_path: Path) -> None:
    programs = clone_with_programs(tmp_path)
    program(programs / "make", "exit 0")
    done = run_in_shell([*first_block(README), *commands(README)], tmp_path, programs)
    end = run_in_shell(["shoal down"], tmp_path, programs)
    assert (done.returncode, end.returncode) == (0, 0), done.stdout
    assert re.search(r"training-\d-\w+ +1/1 +Running", done.stdout)


@pytest.mark.parametrize("broken", ["make", "shoal"])
def test_the_first_block_of_the_readme_stops_at_the_first_failure(broken: str, tmp_path: Path) -> None:
    programs = clone_with_programs(tmp_path)
    for other in ("make", "shoal"):
        program(programs / other, "exit 1" if other == broken else "exit 0")
    (programs / "kubectl").unlink()
    program(programs / "kubectl", "echo kubectl was called")
    done = run_in_shell(["set +e +x", *first_block(README)], tmp_path, programs)
    assert "kubectl was called" not in done.stdout
