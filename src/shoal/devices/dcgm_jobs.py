"""Reads the job mapping files of HPC schedulers: which jobs run on which GPU or MIG instance.

A file is named by the number of the GPU, or of the GPU and its GPU instance (`0.1`), and has one job in each line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shoal.devices.dcgm_text import Entity

JOB_LABEL = "hpc_job"
_NAME = re.compile(r"[0-9]+(\.[0-9]+)?")
Jobs = Mapping[str, tuple[str, ...]]
"""The jobs by the name of the file."""


def is_job_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def jobs_in(text: str) -> tuple[str, ...]:
    """Empty lines are jobs without a name, as in the exporter."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return tuple(line.removesuffix("\r") for line in lines)


def jobs_on(entity: Entity, jobs: Jobs) -> tuple[str, ...]:
    name = f"{entity.gpu}.{entity.instance}" if entity.profile else entity.gpu
    return jobs.get(name, ())
