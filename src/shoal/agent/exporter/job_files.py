"""Reads the folder of job mapping files of an HPC scheduler."""

from __future__ import annotations

from pathlib import Path

from shoal.agent.foreign_file import read_foreign
from shoal.devices.dcgm_jobs import Jobs, is_job_file, jobs_in

_MOST_BYTES = 1 << 20


def read_jobs(folder: Path) -> Jobs:
    """A folder that does not exist, and a file that is deleted meanwhile, have no jobs."""
    found = {}
    try:
        files = [file for file in folder.iterdir() if is_job_file(file.name)]
    except OSError:
        return {}
    for file in files:
        try:
            found[file.name] = jobs_in(read_foreign(file, _MOST_BYTES).decode(errors="replace"))
        except OSError:
            continue
    return found
