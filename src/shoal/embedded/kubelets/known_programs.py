"""Generates the output of programs with which users check the GPUs of a new cluster: `nvidia-smi`, and the vectorAdd
sample of the CUDA images.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.embedded.apiserver.streams.terminal import CannedTerminal, CommandPlace

_SMI, _SAMPLE = "nvidia-smi", "vectoradd"
_ADDED = (
    "[Vector addition of 50000 elements]",
    "Copy input data from the host memory to the CUDA device",
    "CUDA kernel launch with 196 blocks of 256 threads",
    "Copy output data from the CUDA device to the host memory",
    "Test PASSED",
)


def printed(place: CommandPlace) -> Sequence[str] | None:
    """The lines of output; None for other programs."""
    container = place.container
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if any(_SMI in word for word in words):
        answer = CannedTerminal().run(place, [_SMI])
        return (answer.stdout or answer.stderr).splitlines()
    if not words and _SAMPLE in str(container.get("image", "")).lower():
        return _ADDED
    return None
