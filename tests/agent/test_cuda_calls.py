"""The CUDA program reports the first call that failed, and whether the memory was as written."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import pytest

from shoal.agent.validator.cuda_calls import main
from shoal.agent.validator.cuda_process import CudaResult, run_cuda


class FakeCuda:
    """The driver's library with one GPU whose memory is a byte; `fails`: the calls that fail, with their codes."""

    def __init__(self, gpus: int = 1, *, is_broken: bool = False, fails: dict[str, int] | None = None) -> None:
        self._gpus, self._is_broken, self._fails = gpus, is_broken, fails or {}
        self._byte = 0
        self.held = self.allocated = 0

    def __getattr__(self, name: str) -> Any:
        if name in self._fails:
            return lambda *_: self._fails[name]
        if name.startswith("do_"):
            raise AttributeError(name)
        return getattr(self, f"do_{name}", lambda *_: 0)

    def do_cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self._gpus
        return 0

    def do_cuDevicePrimaryCtxRetain(self, *_: Any) -> int:
        self.held += 1
        return 0

    def do_cuDevicePrimaryCtxRelease_v2(self, *_: Any) -> int:
        self.held -= 1
        return 0

    def do_cuMemAlloc_v2(self, *_: Any) -> int:
        self.allocated += 1
        return 0

    def do_cuMemFree_v2(self, *_: Any) -> int:
        self.allocated -= 1
        return 0

    def do_cuMemsetD8_v2(self, _: Any, byte: Any, __: Any) -> int:
        self._byte = 0 if self._is_broken else byte.value
        return 0

    def do_cuMemcpyDtoH_v2(self, copy: Any, _: Any, size: Any) -> int:
        ctypes.memset(copy, self._byte, size.value)
        return 0

    def do_cuGetErrorName(self, code: int, text: Any) -> int:
        text._obj.value = b"CUDA_ERROR_SYSTEM_NOT_READY" if code == 802 else None
        return 0


def printed(cuda: FakeCuda, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(lambda _: cuda) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_all_gpus_are_written_and_read(capsys: pytest.CaptureFixture[str]) -> None:
    cuda = FakeCuda(gpus=3)
    assert printed(cuda, capsys) == {"message": "memory of 3 GPUs was written and read back"}
    assert (cuda.held, cuda.allocated) == (0, 0)


def test_memory_that_differs_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    cuda = FakeCuda(is_broken=True)
    assert printed(cuda, capsys)["error"].startswith("the comparison of the copied memory failed")
    assert (cuda.held, cuda.allocated) == (0, 0)


def test_the_call_that_failed_is_named_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(FakeCuda(fails={"cuInit": 802}), capsys)
    assert found["error"] == "cuInit failed: CUDA_ERROR_SYSTEM_NOT_READY (802)"
    assert "nvidia-fabricmanager" in found["fix"]


def test_a_process_without_gpus_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert "CUDA_VISIBLE_DEVICES" in printed(FakeCuda(gpus=0), capsys)["fix"]


@pytest.mark.parametrize("call", ["cuDevicePrimaryCtxRetain", "cuMemAlloc_v2", "cuMemsetD8_v2", "cuMemcpyDtoH_v2"])
def test_a_failure_in_the_middle_leaves_nothing_allocated(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    cuda = FakeCuda(fails={call: 999})
    assert printed(cuda, capsys)["error"] == f"{call} failed: error 999"
    assert (cuda.held, cuda.allocated) == (0, 0)


def test_a_machine_without_the_library_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    def absent(name: str) -> Any:
        raise OSError(f"{name}: cannot open shared object file")

    assert main(absent) == 0
    assert json.loads(capsys.readouterr().out)["error"] == "libcuda.so.1 was not found"


def test_the_process_gives_a_result_on_every_machine() -> None:
    found = run_cuda()
    assert bool(found.message) != bool(found.error)


def test_a_process_that_does_not_end_is_an_error() -> None:
    assert run_cuda(timeout_s=0.0001) == CudaResult(
        error="a CUDA program did not end within 0 s", fix="see dmesg for Xids; a GPU that blocks needs a reset"
    )
