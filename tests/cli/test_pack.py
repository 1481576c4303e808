"""`shoal pack` through its door: files in, one array or one table out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.cli.main import main

MARKS = ["80", "90", "95", "100", "110", "120", "130"]
NODES = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(f"n{k},64000,262144,4,T4\n" for k in range(25))
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n" + "".join(
    f"p{k:03d},{2000 + 1000 * (k % 5)},4096,{1 if k % 10 else 2},{(300, 500, 700, 1000)[k % 4] if k % 10 else 1000},\n"
    for k in range(120)
)

Pack = Callable[..., tuple[int, str, str]]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS)
    return ["--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]


@pytest.fixture
def pack(capsys: pytest.CaptureFixture[str]) -> Pack:
    def run(*arguments: str) -> tuple[int, str, str]:
        code = main(["pack", *arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return run


def results(out: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(out)
    return found


def test_json_is_one_object_per_policy_with_all_marks_and_nothing_else(files: list[str], pack: Pack) -> None:
    code, out, err = pack(*files, "--policy", "fgd,Shoal", "--json")
    assert (code, err) == (0, "")
    assert [each["policy"] for each in results(out)] == ["FGD", "Shoal"]
    for each in results(out):
        assert list(each) == ["policy", "seed", "pods", "seconds", "alloc", "frag_amount", "frag_ratio"]
        assert each["seed"] == 42
        assert each["pods"] > 120
        assert each["seconds"] > 0
        assert list(each["alloc"]) == list(each["frag_amount"]) == list(each["frag_ratio"]) == MARKS
        assert all(70 < each["alloc"][mark] <= 100 for mark in MARKS)


def test_the_default_policy_is_shoal(files: list[str], pack: Pack) -> None:
    assert [each["policy"] for each in results(pack(*files, "--json")[1])] == ["Shoal"]


def test_the_same_seed_gives_the_same_figures_and_another_seed_others(files: list[str], pack: Pack) -> None:
    def figures(seed: str) -> list[Any]:
        found = results(pack(*files, "--policy", "Random", "--seed", seed, "--json")[1])
        return [each["alloc"] for each in found]

    assert figures("1") == figures("1")
    assert figures("1") != figures("2")


def test_a_load_that_never_arrives_is_null(files: list[str], pack: Pack) -> None:
    alloc = results(pack(*files, "--load", "1.0", "--policy", "BestFit", "--json")[1])[0]["alloc"]
    assert alloc["100"] is not None
    assert [alloc[mark] for mark in ("110", "120", "130")] == [None, None, None]


def test_a_recorded_order_is_taken_as_it_is(files: list[str], pack: Pack, tmp_path: Path) -> None:
    block = [3, 0, 5, 0, *range(25)]
    order = tmp_path / "o.u16.gz"
    order.write_bytes(gzip.compress(np.array(block * 2, dtype="<u2").tobytes()))
    code, out, _ = pack(*files, "--order", str(order), "--seed", "43", "--json")
    assert code == 0
    assert results(out)[0]["pods"] == 3
    code, _, err = pack(*files, "--order", str(order), "--seed", "44", "--json")
    assert code == 2
    assert "has no order for seed 44" in err


def test_without_json_a_table_compares_the_policies(files: list[str], pack: Pack) -> None:
    code, out, _ = pack(*files, "--policy", "all")
    assert code == 0
    for policy in ("Shoal", "Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD"):
        assert policy in out
    assert "25 nodes, 100 GPUs" in out


def test_the_picture_shows_all_policies_and_its_path_is_told(files: list[str], pack: Pack, tmp_path: Path) -> None:
    code, out, _ = pack(*files, "--policy", "Shoal,BestFit", "--plot", str(tmp_path / "out.svg"))
    assert code == 0
    assert f"picture: {tmp_path}/out.svg" in out
    picture = (tmp_path / "out.svg").read_text()
    assert picture.startswith("<svg")
    assert picture.count(">Shoal<") == picture.count(">BestFit<") == 3


def test_with_json_the_picture_adds_nothing_to_stdout(files: list[str], pack: Pack, tmp_path: Path) -> None:
    _, out, _ = pack(*files, "--json", "--plot", str(tmp_path / "out.svg"))
    assert len(results(out)) == 1
    assert (tmp_path / "out.svg").exists()


def test_a_model_the_fleet_lacks_is_a_warning_and_matches_nothing(pack: Pack, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS + "q,1000,1,1,1000,G9|G8\n")
    code, out, err = pack(*files, "--json")
    assert code == 0
    assert err == f"shoal: warning: {tmp_path}/pods.csv: gpu_spec: the fleet has no G8, G9: this matches nothing\n"
    assert len(results(out)) == 1


def test_without_files_a_synthetic_fleet_is_packed(pack: Pack) -> None:
    code, out, _ = pack("--load", "0.02", "--policy", "BestFit")
    assert code == 0
    assert "1,000 nodes" in out


WRONG = {
    "nodes without pods": (["--nodes", "n.csv"], "--nodes is given without --pods; give both"),
    "pods without nodes": (["--pods", "p.csv"], "--pods is given without --nodes; give both"),
    "an order without files": (["--order", "o.gz"], "--order counts rows of the files"),
    "a load of zero": (["--load", "0"], "--load: a load of 0 is outside 0.01 to 10"),
    "a load that is no number": (["--load", "nan"], "--load: a load of nan is outside"),
    "an absurd load": (["--load", "1000"], "--load: a load of 1000 is outside"),
    "an unknown policy": (["--policy", "bestfitt"], '"bestfitt" is not a policy; did you mean BestFit?'),
    "a file that is not there": (["--nodes", "no.csv", "--pods", "no.csv"], "no.csv: cannot be read"),
    "a picture in no folder": (["--plot", "/nowhere/a.svg"], "/nowhere/a.svg: cannot be written"),
    "a picture of another kind": (["--plot", "a.png"], "a.png: must end in .svg"),
}


@pytest.mark.parametrize(("arguments", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_refuses_in_one_line(arguments: list[str], complaint: str, pack: Pack) -> None:
    code, out, err = pack(*arguments, "--json")
    assert (code, out) == (2, "")
    assert complaint in err
    assert err.count("\n") == 1


BAD_FILES = {
    "a negative request": ("p999,-1,1,0,0,\n", "row 122: cpu_milli"),
    "a name used twice": ("p000,1,1,0,0,\n", "row 122: name"),
    "a share of two gpus": ("p999,1,1,2,500,\n", "row 122: gpu_milli"),
}


@pytest.mark.parametrize(("row", "place"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_row_leaves_no_picture(row: str, place: str, pack: Pack, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(PODS + row)
    code, out, err = pack(*files, "--plot", str(tmp_path / "out.svg"))
    assert (code, out) == (2, "")
    assert err.startswith(f"shoal: {tmp_path}/pods.csv: {place}: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["nodes.csv", "pods.csv"]


def test_the_picture_is_refused_before_the_files_are_read(pack: Pack) -> None:
    _, _, err = pack("--nodes", "no.csv", "--pods", "no.csv", "--plot", "/nowhere/a.svg")
    assert "/nowhere/a.svg" in err


def test_a_fleet_without_gpus_is_refused_with_its_file(pack: Pack, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\na,1,1,0,\n")
    code, _, err = pack(*files)
    assert code == 2
    assert err == f"shoal: {tmp_path}/nodes.csv: gpu: no node has a GPU\n"
