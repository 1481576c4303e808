"""The CSV reader: what it accepts, what it makes of it, and that every refusal names file, row and column."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.sim.traces import table
from shoal.sim.traces.openb import TraceNode, TracePod, read_nodes, read_pods, unknown_models
from shoal.units.errors import UserError

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"
POD_HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def nodes_from(tmp_path: Path, content: str | bytes) -> list[TraceNode]:
    return read_nodes(written(tmp_path, content))


def pods_from(tmp_path: Path, content: str | bytes) -> list[TracePod]:
    return read_pods(written(tmp_path, content))


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "list.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_published_node_row_becomes_a_node(tmp_path: Path) -> None:
    assert nodes_from(tmp_path, NODE_HEADER + "openb-node-0000,64000,262144,2,P100\n") == [
        TraceNode("openb-node-0000", 64000, 262144, 2, "P100")
    ]


ACCEPTED_NODES = {
    "the name column may be called name": "name,cpu_milli,memory_mib,gpu,model\na,1,2,3,T4\n",
    "columns may stand in any order": "model,gpu,memory_mib,cpu_milli,sn\nT4,3,2,1,a\n",
    "columns nobody asked for are ignored": "sn,zone,cpu_milli,memory_mib,gpu,model\na,x,1,2,3,T4\n",
    "lines may end as on Windows": NODE_HEADER.replace("\n", "\r\n") + "a,1,2,3,T4\r\n",
    "the last line may lack its end": NODE_HEADER + "a,1,2,3,T4",
    "a byte order mark is not part of the first column": "\ufeff" + NODE_HEADER + "a,1,2,3,T4\n",
    "blank lines are skipped": "\n" + NODE_HEADER + "\n  \na,1,2,3,T4\n\n",
    "blanks around a cell do not count": NODE_HEADER + " a , 1,2 ,3, T4\n",
    "cells may be quoted": '"sn","cpu_milli","memory_mib","gpu","model"\n"a","1","2","3","T4"\n',
    "both names of the name column may be there": "sn,name,cpu_milli,memory_mib,gpu,model\na,other,1,2,3,T4\n",
}


@pytest.mark.parametrize("content", ACCEPTED_NODES.values(), ids=ACCEPTED_NODES.keys())
def test_a_node_list_is_accepted_when(content: str, tmp_path: Path) -> None:
    assert [(n.cpu_milli, n.memory_mib, n.gpu, n.model) for n in nodes_from(tmp_path, content)] == [(1, 2, 3, "T4")]


def test_a_node_without_gpus_needs_no_model(tmp_path: Path) -> None:
    assert nodes_from(tmp_path, NODE_HEADER + "a,1,2,0,\n") == [TraceNode("a", 1, 2, 0, "")]


PODS = {
    "one whole gpu": ("p,1,2,1,1000,", TracePod("p", 1, 2, 1, 1000, "")),
    "a share of one gpu": ("p,1,2,1,460,", TracePod("p", 1, 2, 1, 460, "")),
    "several whole gpus": ("p,1,2,8,1000,G2", TracePod("p", 1, 2, 8, 1000, "G2")),
    "no gpu": ("p,1,2,0,0,", TracePod("p", 1, 2, 0, 0, "")),
    "without a gpu, milli and models are ignored": ("p,1,2,0,1000,G2", TracePod("p", 1, 2, 0, 0, "")),
    "without a gpu, milli may be left out": ("p,1,2,0,,", TracePod("p", 1, 2, 0, 0, "")),
    "the list of models is kept as written": ("p,1,2,1,1000,B|A|A", TracePod("p", 1, 2, 1, 1000, "B|A|A")),
    "a short row may end before the models": ("p,1,2,1,1000", TracePod("p", 1, 2, 1, 1000, "")),
    "nothing at all": ("p,0,0,0,0,", TracePod("p", 0, 0, 0, 0, "")),
}


@pytest.mark.parametrize(("row", "pod"), PODS.values(), ids=PODS.keys())
def test_a_pod_row_reads_as(row: str, pod: TracePod, tmp_path: Path) -> None:
    assert pods_from(tmp_path, POD_HEADER + row + "\n") == [pod]


def test_a_pod_list_without_gpu_spec_means_any_model(tmp_path: Path) -> None:
    content = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,2,1,1000\n"
    assert pods_from(tmp_path, content) == [TracePod("p", 1, 2, 1, 1000, "")]


def test_models_are_the_set_behind_the_string() -> None:
    assert TracePod("p", 0, 0, 1, 1000, "V100|T4|T4").models == frozenset({"V100", "T4"})
    assert TracePod("p", 0, 0, 1, 1000, "").models == frozenset()


WRONG_NODES = {
    "an empty file": ("", ": is empty"),
    "a header and nothing else": (NODE_HEADER, ": has a header but no rows"),
    "a missing column": ("sn,cpu_milli,gpu,model\na,1,1,T4\n", ': row 1: column "memory_mib" is missing'),
    "a missing name column": ("id,cpu_milli,memory_mib,gpu,model\n", ': row 1: column "sn" or "name" is missing'),
    "a column that appears twice": ("sn,gpu,cpu_milli,memory_mib,gpu,model\n", ': row 1: column "gpu" appears twice'),
    "a word where a number belongs": (NODE_HEADER + "a,1,2,3,T4\nb,x,2,3,T4\n", ': row 3: cpu_milli: "x" is not'),
    "a decimal fraction": (NODE_HEADER + "a,1.5,2,3,T4\n", ': row 2: cpu_milli: "1.5" is not a whole number'),
    "a quantity with a suffix": (NODE_HEADER + "a,1,16Gi,3,T4\n", ': row 2: memory_mib: "16Gi" is not'),
    "python's own spelling of numbers": (NODE_HEADER + "a,1_000,2,3,T4\n", ': row 2: cpu_milli: "1_000" is not'),
    "digits of another script": (NODE_HEADER + "a,\u0663,2,3,T4\n", ": row 2: cpu_milli: "),
    "a negative number": (NODE_HEADER + "a,1,-2,3,T4\n", ': row 2: memory_mib: "-2" is negative'),
    "an absurd number": (NODE_HEADER + "a,1,2,100000,T4\n", ': row 2: gpu: "100000" is outside 0 to 128'),
    "a number of ten thousand digits": (NODE_HEADER + f"a,{'9' * 10000},2,3,T4\n", ": row 2: cpu_milli: "),
    "an empty number": (NODE_HEADER + "a,1,2,,T4\n", ": row 2: gpu: is empty"),
    "an empty name": (NODE_HEADER + ",1,2,3,T4\n", ": row 2: sn: is empty"),
    "a name used twice": (NODE_HEADER + "a,1,2,3,T4\nb,1,2,3,T4\na,1,2,3,T4\n", ': row 4: sn: "a" is already'),
    "a row too short": (NODE_HEADER + "a,1,2\n", ": row 2: gpu: the row ends before this column"),
    "a row too long": (NODE_HEADER + "a,1,2,3,T4,x\n", ": row 2: has 6 cells, the header has 5"),
    "two models for one node": (NODE_HEADER + "a,1,2,3,T4|A10\n", ": row 2: model: is not the name of one GPU model"),
    "a quote that never closes": (NODE_HEADER + 'a,1,2,3,T4\nb,"1,2,3,T4\nc,1,2,3,T4\n', ": row 3: is not CSV"),
    "a line break inside a quoted name": (NODE_HEADER + '"a\nb",1,2,3,T4\nc,x,2,3,T4\n', ": row 2: sn: "),
    "a row after a quoted line break, counted as editors count": (
        "sn,note,cpu_milli,memory_mib,gpu,model\n" + 'a,"x\ny\nz",1,2,3,T4\nb,,?,2,3,T4\n',
        ": row 5: cpu_milli: ",
    ),
    "a row after blank lines, counted as editors count": (NODE_HEADER + "\n\na,?,2,3,T4\n", ": row 4: cpu_milli: "),
    "bytes that are no text": (NODE_HEADER.encode() + b"a,1,2,3,T\xff\n", ": row 2: byte 0xff is not UTF-8"),
    "a NUL byte": (NODE_HEADER + "a,1,2,3,T\0\n", ": row 2: holds a NUL byte"),
    "UTF-16 as a spreadsheet saves it": (NODE_HEADER.encode("utf-16"), ": is UTF-16 text; save it as UTF-8"),
    "a zip archive": (b"PK\x03\x04\x14\x00\x08\x08\x08\x00\xf1\xaa", ": row 1: byte 0xf1 is not UTF-8"),
}


@pytest.mark.parametrize(("content", "complaint"), WRONG_NODES.values(), ids=WRONG_NODES.keys())
def test_a_node_list_is_refused_for(content: str | bytes, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        nodes_from(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path}/list.csv{complaint}")
    assert "\n" not in str(caught.value)


WRONG_PODS = {
    "a share with several gpus": ("p,1,2,2,500,", "gpu_milli: 500 with num_gpu 2: only a pod with one GPU can share"),
    "no milli on one gpu": ("p,1,2,1,0,", 'gpu_milli: "0" is outside 1 to 1,000'),
    "more than a whole gpu": ("p,1,2,1,1001,", 'gpu_milli: "1001" is outside 1 to 1,000'),
    "milli left out on one gpu": ("p,1,2,1,,", "gpu_milli: is empty"),
    "half a gpu as a fraction": ("p,1,2,0.5,1000,", 'num_gpu: "0.5" is not a whole number'),
    "negative milli even without a gpu": ("p,1,2,0,-5,", 'gpu_milli: "-5" is negative'),
    "models without a name among them": ("p,1,2,1,1000,|", "gpu_spec: names no model"),
    "a name used twice": ("p,1,2,0,0,\np,1,2,0,0,", "name: "),
}


@pytest.mark.parametrize(("rows", "complaint"), WRONG_PODS.values(), ids=WRONG_PODS.keys())
def test_a_pod_list_is_refused_for(rows: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        pods_from(tmp_path, POD_HEADER + rows + "\n")
    last_row = 2 + rows.count("\n")
    assert str(caught.value).startswith(f"{tmp_path}/list.csv: row {last_row}: {complaint}")


def test_a_file_that_is_not_there_is_the_users_turn(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.csv: cannot be read: No such file"):
        read_nodes(tmp_path / "nowhere.csv")


def test_a_folder_is_no_list(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_nodes(tmp_path)


def test_an_endless_file_is_read_no_further_than_the_limit() -> None:
    with pytest.raises(UserError, match="/dev/zero: is larger than 64 MiB"):
        read_nodes(Path("/dev/zero"))


def test_a_model_the_fleet_lacks_is_reported_once() -> None:
    nodes = [TraceNode("a", 1, 1, 2, "T4"), TraceNode("b", 1, 1, 0, "H100")]
    pods = [TracePod("p", 0, 0, 1, 1000, "T4|G9"), TracePod("q", 0, 0, 1, 1000, "G9|H100")]
    assert unknown_models(nodes, pods) == ["G9", "H100"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=300), st.text(alphabet='a1,"\n\r-.|\0', max_size=80).map(str.encode)))
def test_any_bytes_are_read_or_refused_with_one_line(content: bytes, tmp_path: Path) -> None:
    for head in (b"", POD_HEADER.encode()):
        try:
            pods = pods_from(tmp_path, head + content)
        except UserError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
        else:
            assert all(pod.gpu_milli == 1000 or pod.num_gpu < 2 for pod in pods)


def test_the_size_limit_leaves_room_for_lists_a_hundred_times_the_published_ones() -> None:
    assert table.MAX_FILE_BYTES > 100 * 580_000
