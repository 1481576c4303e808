"""Work that takes its time, done beside the loop: everybody else is served meanwhile, if somewhat slower.

One piece of it at a time. Rejected: the loop's own threads. Python runs one thread at a time, so ten clients with large
bodies in YAML would leave the loop an eleventh of the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
LARGE_BYTES = 100_000
"""Of YAML: what is smaller is done sooner than another thread has begun."""
_worker = ThreadPoolExecutor(1, "shoal-beside")


async def beside(work: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
    return await asyncio.get_running_loop().run_in_executor(_worker, partial(work, *args, **more))
