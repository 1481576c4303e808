"""Runs a CUDA program in a process of its own and reports the first call that failed.

A process of its own, because a fault of the driver can end it or block it without end.
"""

from __future__ import annotations

import subprocess
import sys

import msgspec

_TIMEOUT_S = 60.0
_MOST_OUTPUT = 4096


class CudaResult(msgspec.Struct, frozen=True):
    message: str = ""
    error: str = ""
    fix: str = ""


def run_cuda(timeout_s: float = _TIMEOUT_S) -> CudaResult:
    command = [sys.executable, "-m", "shoal.agent.validator.cuda_calls"]
    try:
        done = subprocess.run(  # noqa: S603 - the command is fixed
            command, capture_output=True, text=True, timeout=timeout_s, check=False, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        fix = "see dmesg for Xids; a GPU that blocks needs a reset"
        return CudaResult(error=f"a CUDA program did not end within {timeout_s:.0f} s", fix=fix)
    if done.returncode < 0:
        return CudaResult(error=f"a CUDA program was ended by signal {-done.returncode}", fix="see dmesg for Xids")
    try:
        return msgspec.json.decode(done.stdout[:_MOST_OUTPUT], type=CudaResult)
    except msgspec.MsgspecError:
        last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1][:200]
        return CudaResult(error=f"a CUDA program failed: {last}")
