"""Claims are prepared once for one user, whatever fails and whenever the process ends."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from build.claimable import NODE
from build.prepared_claims import PreparingNode, allocated
from shoal.units.errors import UserError

KIND = "k8s.gpu.nvidia.com/claim"
FILE_A = "k8s.gpu.nvidia.com-claim_uid-a.json"
CONFIG = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig"}


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_claim_gets_a_specification_with_its_devices(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1", "gpu-3"))
    assert node.prepare("a") == {"a": [f"{KIND}=uid-a-gpu-1", f"{KIND}=uid-a-gpu-3"]}
    spec = node.specs()[FILE_A]
    assert spec["kind"] == KIND
    assert [
        (one["name"], [node["path"] for node in one["containerEdits"]["deviceNodes"]]) for one in spec["devices"]
    ] == [
        ("uid-a-gpu-1", ["/dev/nvidia1"]),
        ("uid-a-gpu-3", ["/dev/nvidia3"]),
    ]


def test_a_mig_instance_comes_with_its_capabilities(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-0-mig-1g10gb-19-2"), machine="dgx-h100[mig=all-1g.10gb]")
    node.prepare("a")
    nodes = node.specs()[FILE_A]["devices"][0]["containerEdits"]["deviceNodes"]
    assert nodes[0]["path"] == "/dev/nvidia0"
    assert len(nodes) == 3


def test_preparing_again_changes_nothing_and_needs_no_cluster(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"))
    first = node.prepare("a")
    node.is_silent = True
    assert node.prepare("a") == first


def test_an_unprepared_claim_leaves_no_file_and_can_be_unprepared_again(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"), allocated("b", "gpu-1"))
    node.prepare("a")
    node.unprepare("a")
    node.unprepare("a", "unknown")
    assert node.specs() == {}
    assert node.prepare("b")


def test_a_device_is_prepared_for_one_claim_at_a_time(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"), allocated("b", "gpu-1"), allocated("c", "gpu-2"))
    node.prepare("a")
    with pytest.raises(ValueError, match=r"team/b: device gpu-1 is prepared for ResourceClaim team/a \(uid uid-a\)"):
        node.prepare("b")
    assert node.prepare("c")


def test_of_two_calls_at_once_for_one_device_one_is_refused(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, *(allocated(name, "gpu-1") for name in "abcdefgh"))
    start, outcomes = threading.Barrier(8), list[str]()

    def one(name: str) -> None:
        start.wait()
        try:
            node.prepare(name)
        except ValueError:
            outcomes.append("refused")
        else:
            outcomes.append("prepared")

    threads = [threading.Thread(target=one, args=(name,)) for name in "abcdefgh"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["prepared", *["refused"] * 7]
    assert len(node.specs()) == 1


def test_admin_access_shares_a_device(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"), allocated("admin", "gpu-1", adminAccess=True))
    node.prepare("admin")
    node.prepare("a")
    node.unprepare("admin")
    with pytest.raises(ValueError, match="is prepared for"):
        PreparingNode(tmp_path, allocated("b", "gpu-1")).prepare("b")


def replaced() -> Any:
    claim = allocated("a", "gpu-1")
    claim["metadata"]["uid"] = "other"
    return claim


def deallocated() -> Any:
    claim = allocated("a", "gpu-1")
    claim["status"] = {}
    return claim


def elsewhere() -> Any:
    claim = allocated("a", "gpu-1")
    claim["status"]["allocation"]["devices"]["results"][0]["pool"] = "n2"
    return claim


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (allocated("b", "gpu-1"), "ResourceClaim team/a: there is no such claim in the cluster"),
        (replaced(), "the claim was replaced: its uid is other, the kubelet asks for uid-a"),
        (deallocated(), "status.allocation: the claim is not allocated"),
        (elsewhere(), f"the allocation has no device of gpu.nvidia.com on node {NODE}"),
        (allocated("a", "gpu-9"), r"results\[0\].device: this node has no device gpu-9"),
        (allocated("a", "gpu-1", config={**CONFIG, "shared": True}), "config.*unknown field `shared`"),
        (allocated("a", "gpu-1", config={**CONFIG, "kind": "MigDeviceConfig"}), "does not apply to a device"),
        (allocated("a", "gpu-1", config={**CONFIG, "sharing": {"strategy": "MPS"}}), "MPS is not available"),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_prepared_has_a_clear_error(tmp_path: Path, claim: Any, said: str) -> None:
    node = PreparingNode(tmp_path, claim)
    with pytest.raises(ValueError, match=said):
        node.prepare("a")
    assert node.specs() == {}


def test_an_error_of_one_claim_does_not_concern_the_others(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"))
    with pytest.raises(ValueError, match="team/gone: there is no such claim"):
        node.prepare("gone", "a")
    assert set(node.specs()) == {FILE_A}


def test_a_uid_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("/../../x", "gpu-1"))
    with pytest.raises(ValueError, match="is not the uid of a claim"):
        node.prepare("/../../x")
    with pytest.raises(ValueError, match="is not the uid of a claim"):
        node.unprepare("/../../x")


def test_a_silent_cluster_is_an_error_of_the_claim(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"))
    node.is_silent = True
    with pytest.raises(ValueError, match="the API server does not answer"):
        node.prepare("a")
    node.is_silent = False
    assert node.prepare("a")


def test_on_a_full_disk_no_claim_is_prepared_and_those_before_stay(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"), allocated("b", "gpu-2"))
    node.prepare("a")
    with full_disk(), pytest.raises(ValueError, match=r"checkpoint\.json: cannot be written: File too large"):
        node.prepare("b")
    with full_disk(), pytest.raises(ValueError, match=r"checkpoint\.json: cannot be written"):
        node.unprepare("a")
    assert PreparingNode(tmp_path).prepare("a")
    node.unprepare("a")
    assert node.prepare("b")


def test_a_claim_whose_specification_cannot_be_written_holds_no_device(tmp_path: Path) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"), allocated("b", "gpu-1"))
    (node.cdi / FILE_A).mkdir(parents=True)
    with pytest.raises(ValueError, match="the CDI specification cannot be written"):
        node.prepare("a")
    (node.cdi / FILE_A).rmdir()
    assert node.prepare("b")


def test_prepared_claims_survive_a_restart_of_the_agent_and_of_the_machine(tmp_path: Path) -> None:
    PreparingNode(tmp_path, allocated("a", "gpu-1")).prepare("a")
    for path in (tmp_path / "cdi").iterdir():
        path.unlink()
    node = PreparingNode(tmp_path, allocated("b", "gpu-1"))
    node.preparation.restore()
    assert set(node.specs()) == {FILE_A}
    with pytest.raises(ValueError, match="is prepared for"):
        node.prepare("b")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text[: len(text) // 2], "cannot be read: Input data was truncated"),
        (lambda text: text.replace("gpu-1", "gpu-2"), "its checksum does not match"),
        (lambda text: text.replace('"version":1', '"version":2'), "it has version 2, this agent reads version 1"),
    ],
    ids=["truncated", "changed", "newer"],
)
def test_a_damaged_checkpoint_is_never_taken_for_an_empty_one(tmp_path: Path, change: Any, said: str) -> None:
    node = PreparingNode(tmp_path, allocated("a", "gpu-1"))
    node.prepare("a")
    node.checkpoint.write_text(change(node.checkpoint.read_text()))
    with pytest.raises(UserError, match=said):
        PreparingNode(tmp_path)


_CALLS = ("open", "os.rename", "os.remove", "os.mkdir", "tempfile.mkstemp")
_KILLED = f"""
import os, signal, sys
from pathlib import Path
from build.prepared_claims import PreparingNode, allocated

for number in range(200):
    folder = Path(sys.argv[1]) / str(number)
    child = os.fork()
    if not child:
        node = PreparingNode(folder, allocated("a", "gpu-1"))
        left = number

        def count(event, args):
            global left
            if event in {_CALLS!r} and str(folder) in str(args):
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)
                left -= 1

        sys.addaudithook(count)
        node.prepare("a")
        node.unprepare("a")
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    print(status, flush=True)
    if status == 0:
        break
"""


def test_a_claim_can_be_completed_after_a_kill_before_any_call_to_the_file_system(tmp_path: Path) -> None:
    root = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    arguments = [sys.executable, "-c", _KILLED, str(tmp_path)]
    done = subprocess.run(arguments, env=environment, check=True, capture_output=True, text=True)
    *killed, last = map(int, done.stdout.split())
    assert last == 0
    assert set(killed) == {signal.SIGKILL}
    assert len(killed) > 10
    recorded = 0
    for number in range(len(killed)):
        node = PreparingNode(tmp_path / str(number), allocated("a", "gpu-1"), allocated("b", "gpu-1"))
        # What is on disk is never a specification without a record.
        has_record = node.checkpoint.exists() and "uid-a" in json.loads(node.checkpoint.read_text())["claims"]
        assert has_record or not node.specs()
        recorded += has_record
        node.preparation.restore()
        node.prepare("a")
        assert set(node.specs()) == {FILE_A}
        with pytest.raises(ValueError, match="is prepared for"):
            node.prepare("b")
        node.unprepare("a")
        assert node.specs() == {}
        assert node.prepare("b")
    assert 0 < recorded < len(killed)
