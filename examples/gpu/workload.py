"""What train.py and serve.py have in common: the work on a GPU, the loop that measures it, and its report.

With PyTorch installed the work is a small network; otherwise it is copies and a kernel by the driver's library
(cuda_driver.py). Each call of the work returns after the GPU has ended it. No setting of the GPU is changed.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any, Protocol

from cuda_driver import KERNEL_RESULT, CudaGpu, GpuError

_WARM_UP = 3
_TRAINING_NUMBERS, _TRAINING_ROUNDS = 2 * 2**20, 16_384
_ANSWER_NUMBERS, _ANSWER_ROUNDS, _ANSWER_KERNELS = 64 * 2**10, 1_024, 8
_NUMBER_BYTES = 4
_WIDTH, _TRAINING_BATCH = 2_048, 512


class Work(Protocol):
    framework: str
    gpu: str

    def train(self) -> None:
        """One step of training: a batch to the GPU, much computing, one number back."""
        ...

    def answer(self) -> None:
        """One request of inference: a small input, a few short kernels, a small output."""
        ...

    def close(self) -> None: ...


class CudaWork:
    framework = "none (CUDA by ctypes)"

    def __init__(self) -> None:
        self._cuda = CudaGpu()
        self.gpu = self._cuda.name
        self._batch = (ctypes.c_float * _TRAINING_NUMBERS)()
        self._input = (ctypes.c_float * _ANSWER_NUMBERS)()
        self._loss = (ctypes.c_float * 1)()
        size = _TRAINING_NUMBERS * _NUMBER_BYTES
        self._memory, self._gradients = self._cuda.allocate(size), self._cuda.allocate(size)

    def train(self) -> None:
        self._cuda.to_gpu(self._memory, self._batch)
        self._cuda.clear(self._gradients, _TRAINING_NUMBERS * _NUMBER_BYTES)
        self._cuda.start(self._memory, _TRAINING_NUMBERS, _TRAINING_ROUNDS)
        self._cuda.from_gpu(self._loss, self._memory)
        self._check()

    def answer(self) -> None:
        self._cuda.to_gpu(self._memory, self._input)
        for _ in range(_ANSWER_KERNELS):
            self._cuda.start(self._memory, _ANSWER_NUMBERS, _ANSWER_ROUNDS)
        self._cuda.from_gpu(self._loss, self._memory)
        self._check()

    def close(self) -> None:
        self._cuda.close()

    def _check(self) -> None:
        if self._loss[0] != KERNEL_RESULT:
            raise GpuError(f"the GPU computed {self._loss[0]}, not {KERNEL_RESULT}")


class TorchWork:
    def __init__(self) -> None:
        torch = import_module("torch")
        if not torch.cuda.is_available():
            raise GpuError("PyTorch finds no GPU: check the driver and CUDA_VISIBLE_DEVICES, or --framework cuda")
        self.framework, self.gpu = f"PyTorch {torch.__version__}", torch.cuda.get_device_name(0)
        layers = [layer for _ in range(4) for layer in (torch.nn.Linear(_WIDTH, _WIDTH), torch.nn.ReLU())]
        self._torch, self._network = torch, torch.nn.Sequential(*layers).cuda()
        self._optimizer = torch.optim.SGD(self._network.parameters(), lr=1e-3)
        self._batch, self._input = torch.randn(_TRAINING_BATCH, _WIDTH), torch.randn(1, _WIDTH)

    def train(self) -> None:
        self._optimizer.zero_grad()
        loss = self._network(self._batch.cuda()).square().mean()
        loss.backward()
        self._optimizer.step()
        loss.item()

    def answer(self) -> None:
        with self._torch.no_grad():
            self._network(self._input.cuda()).cpu()

    def close(self) -> None:
        self._torch.cuda.synchronize()


def run(program: str, description: str, choose: Callable[[Work], Callable[[], None]]) -> int:
    """The exit code. `choose`: the call that is repeated."""
    parser = argparse.ArgumentParser(prog=f"{program}.py", description=description)
    parser.add_argument("--seconds", type=float, default=5.0, help="how long the work is repeated (5)")
    parser.add_argument("--framework", choices=("auto", "cuda", "torch"), default="auto")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--wait", action="store_true", help="print `ready`, and begin after a line on standard input")
    options = parser.parse_args()
    try:
        work = _open(options.framework)
        try:
            report = _measured(program, work, choose(work), options)
        finally:
            work.close()
    except (GpuError, ImportError) as error:
        sys.stderr.write(f"{program}.py: {error}\n")
        return 1
    sys.stdout.write((json.dumps(report) if options.json else _text(report)) + "\n")
    return 0


def _open(framework: str) -> Work:
    if framework == "torch" or (framework == "auto" and find_spec("torch") is not None):
        return TorchWork()
    return CudaWork()


def _measured(program: str, work: Work, repeated: Callable[[], None], options: argparse.Namespace) -> dict[str, Any]:
    for _ in range(_WARM_UP):
        repeated()
    if options.wait:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
    took_s: list[float] = []
    began_s = before_s = perf_counter()
    while before_s - began_s < options.seconds or not took_s:
        repeated()
        now_s = perf_counter()
        took_s.append(now_s - before_s)
        before_s = now_s
    return {
        "program": program,
        "framework": work.framework,
        "gpu": work.gpu,
        "count": len(took_s),
        "per_second": len(took_s) / (before_s - began_s),
        "p50_ms": 1_000 * quantile(took_s, 0.50),
        "p99_ms": 1_000 * quantile(took_s, 0.99),
    }


def quantile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * round(part * 100) // 100) - 1)]


def _text(report: dict[str, Any]) -> str:
    unit = {"train": "steps", "serve": "requests"}[report["program"]]
    return (
        f"{report['gpu']}, framework: {report['framework']}\n"
        f"{report['per_second']:.1f} {unit}/s; p50 {report['p50_ms']:.2f} ms, p99 {report['p99_ms']:.2f} ms"
    )
