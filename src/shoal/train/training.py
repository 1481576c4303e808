"""The loop around a training step: where to begin, when to save, when to leave.

A signal only sets a flag; what it asks for happens between two steps, when everything is consistent. With several ranks
all must leave after the same step, or those that stay wait for the others for ever: they agree by torch.distributed,
where the script has it running, or by a function of its own.

Rejected: saving in the signal handler. It runs in the middle of a step, on whatever happens to be half written.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

from shoal.train.checkpoints import Checkpoint, Checkpoints, Write
from shoal.train.progress import FILE_VARIABLE, SERVICE_ACCOUNT, Progress, Reporter, reporter_of

ENDED_BY_SIGTERM = 143
"""What a shell calls 128 + 15, and Kubernetes shows as the exit code of a process that was terminated."""
_PATIENCE_S = 600.0
_POLL_S = 0.2
_TELL_S = 10.0
Agree = Callable[[bool], bool]
"""Whether any rank says so; called by all after each step."""


class Training:
    """`save` fills a folder, `load` reads one; both with whatever the script keeps."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        save: Write,
        load: Write,
        every_s: float = 600.0,
        keep: int = 3,
        environment: Mapping[str, str] = os.environ,
        agree: Agree | None = None,
        reporter: Reporter | None = None,
        account: Path = SERVICE_ACCOUNT,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], object] = time.sleep,  # noqa: TID251 - ranks wait for each other's files
    ) -> None:
        """`every_s` 0: after every step. `environment` tells RANK and WORLD_SIZE, as torchrun and Shoal set them."""
        rank, ranks = _whole(environment, "RANK", 0), _whole(environment, "WORLD_SIZE", 1)
        self.checkpoints = Checkpoints(folder, keep=keep, rank=rank, ranks=ranks)
        self._rank, self._ranks = rank, ranks
        self._save = save
        self._load = load
        self._every_s = every_s
        self._agree = agree or _agree_by_torch
        # The first process of each pod reports: the annotations of a pod have one value.
        reports = rank == 0 or (_whole(environment, "LOCAL_RANK", 0) == 0 and FILE_VARIABLE not in environment)
        self.reporter = reporter or (reporter_of(environment, account) if reports else reporter_of({}))
        self._clock = clock
        self._pause = pause
        self._stop = threading.Event()
        self._before: Any = None
        self._saved_s: float | None = None
        self._due_s = 0.0
        self._reported_s = float("-inf")
        self._steps = _StepTimes()

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._heard)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        self.reporter.close()

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to terminate; it will, after this step."""
        return self._stop.is_set()

    def stop(self) -> None:
        """As SIGTERM does."""
        self._stop.set()

    def resume(self) -> int:
        """Load the newest whole checkpoint; the step to go on with, 0 where there is none.

        One that cannot be loaded is passed over for the one before it: better an hour lost than the run. With several
        ranks it is passed over by all as soon as it fails one: ranks that went on from different steps would compute
        nonsense, and wait for each other at the end.
        """
        if self._rank == 0:
            self.checkpoints.clear()
        # No rank reads before the first rank has removed old marks.
        self._agree(False)
        has_loaded = False
        for checkpoint in self.checkpoints.named():
            is_loaded = self._is_loaded(checkpoint)
            has_loaded = has_loaded or is_loaded
            if not self._agree(not is_loaded):
                return checkpoint.step
            if not is_loaded and not self._may_agree():
                raise RuntimeError(
                    f"rank {self._rank} cannot load {checkpoint.folder}, and the ranks cannot agree on another: call "
                    f"torch.distributed.init_process_group before steps(), or give Training an `agree` of your own"
                )
        if has_loaded and self._ranks > 1:
            raise RuntimeError(f"no checkpoint in {self.checkpoints.folder} can be loaded by every rank")
        return 0

    def _is_loaded(self, checkpoint: Checkpoint) -> bool:
        try:
            if self.checkpoints.is_whole(checkpoint):
                self._load(checkpoint.folder)
                return True
            error: object = "it is not whole"
        except Exception as found:  # noqa: BLE001 - whatever the script's own loading raises
            error = found
        sys.stderr.write(f"shoal.train: {checkpoint.folder} cannot be loaded, trying an older one: {error}\n")
        return False

    def _may_agree(self) -> bool:
        return self._ranks == 1 or self._agree is not _agree_by_torch or _distributed() is not None

    def steps(self, stop: int) -> Iterator[int]:
        """From where the last run was up to `stop`. A step is done when the next one is asked for. Told to end, the
        process saves and exits with 143, so that a Job counts it as ended and not as completed."""
        done = self.resume()
        self._due_s = self._clock() + self._every_s
        self._tell(done, stop)
        while done < stop:
            began_s = self._clock()
            yield done
            done += 1
            self._steps.add_step(self._clock() - began_s)
            ends = self._agree(self.is_stopping)
            if ends or done == stop or self._agree(self._clock() >= self._due_s):
                self.save(done)
                self._reported_s = float("-inf")
            self._tell(done, stop)
            if ends and done < stop:
                self.reporter.close()
                raise SystemExit(ENDED_BY_SIGTERM)

    @contextmanager
    def communicating(self) -> Iterator[None]:
        """Around what waits for other ranks, such as an all-reduce: the pod then reports which part of its time that
        is. The rank that waits least is the one that the others wait for."""
        began_s = self._clock()
        try:
            yield
        finally:
            self._steps.add_communication(self._clock() - began_s)

    def save(self, step: int) -> None:
        """Now, whenever it is due."""
        began_s = self._clock()
        self.checkpoints.save(step, self._save, wait=self._wait)
        self._saved_s = began_s
        self._due_s = self._clock() + self._every_s

    def _tell(self, done: int, stop: int) -> None:
        now_s = self._clock()
        if now_s - self._reported_s >= _TELL_S:
            self._reported_s = now_s
            self.reporter.tell(Progress(done, stop, self._saved_s, *self._steps.taken()))

    def _wait(self, is_so: Callable[[], bool]) -> bool:
        ends_s = self._clock() + _PATIENCE_S
        while not is_so():
            if self._clock() >= ends_s:
                return False
            self._pause(_POLL_S)
        return True

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()
        if callable(self._before):
            self._before(number, frame)


class _StepTimes:
    """Sums of the steps since the last report. A clock that was set back adds nothing."""

    def __init__(self) -> None:
        self._count = 0
        self._step_s = self._communication_s = 0.0
        self._is_measured = False

    def add_step(self, seconds: float) -> None:
        self._count += 1
        self._step_s += max(0.0, seconds)

    def add_communication(self, seconds: float) -> None:
        self._is_measured = True
        self._communication_s += max(0.0, seconds)

    def taken(self) -> tuple[float | None, float | None]:
        """The mean time of a step and the part of it that was communication, since the last call."""
        step_s = self._step_s / self._count if self._count else None
        has_share = self._is_measured and self._step_s > 0
        share = min(1.0, self._communication_s / self._step_s) if has_share else None
        self._count, self._step_s, self._communication_s = 0, 0.0, 0.0
        return step_s, share


def _agree_by_torch(mine: bool) -> bool:
    """Whether any rank says so, where torch.distributed is running; else what this process says."""
    distributed = _distributed()
    if distributed is None:
        return mine
    found: list[bool] = [False] * distributed.get_world_size()
    distributed.all_gather_object(found, mine)
    return any(found)


def _distributed() -> Any:
    """torch.distributed, where it is running."""
    found: Any = getattr(sys.modules.get("torch"), "distributed", None)
    return found if found is not None and found.is_available() and found.is_initialized() else None


def _whole(environment: Mapping[str, str], name: str, otherwise: int) -> int:
    text = environment.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{name} must be a whole number, got {text!r}")
    return int(text)
