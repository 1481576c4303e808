"""Where jobs of every kind keep what quota asks of them: pod templates and numbers, the word that holds their pods
back, and how they say that they ended. One table for manifests and for living clusters.
"""

from shoal.store.queues.job_parts.part import Ending, JobShape, Look, Obj, PodPart, Steps, dig, nobody, path_of
from shoal.store.queues.job_parts.table import SHAPES

__all__ = ["Ending", "JobShape", "Look", "Obj", "PodPart", "SHAPES", "Steps", "dig", "nobody", "path_of"]
