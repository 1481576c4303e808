"""Locates the parts of job kinds that quota needs: pod templates and counts, the field that suspends them, and how they
finish. One table for manifests and for living clusters.
"""

from shoal.store.queues.job_parts.part import (
    Ending,
    JobKind,
    JobShape,
    Obj,
    ObjectLookup,
    PodPart,
    Steps,
    dig,
    no_lookup,
    path_of,
)
from shoal.store.queues.job_parts.table import BY_KIND, JOB_KINDS, RUN_POLICY, SHAPES, SUSPEND

__all__ = [
    "BY_KIND",
    "Ending",
    "JOB_KINDS",
    "JobKind",
    "JobShape",
    "ObjectLookup",
    "Obj",
    "PodPart",
    "RUN_POLICY",
    "SHAPES",
    "SUSPEND",
    "Steps",
    "dig",
    "no_lookup",
    "path_of",
]
