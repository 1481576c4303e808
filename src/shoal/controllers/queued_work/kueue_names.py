"""Defines Kueue's labels, annotations, finalizers and conditions on jobs, pod templates and Workloads."""

from __future__ import annotations

JOB_UID = "kueue.x-k8s.io/job-uid"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
MAX_EXEC_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
STOPPING = "kueue.x-k8s.io/stopping"
"""On a job that was suspended and whose templates still have to be restored."""
IN_USE = "kueue.x-k8s.io/resource-in-use"
"""The finalizer of Workloads."""
COMPLETIONS_EQUAL_PARALLELISM = "kueue.x-k8s.io/job-completions-equal-parallelism"

ELASTIC = "kueue.x-k8s.io/elastic-job"
"""An annotation of jobs that may change their size while they run, and of their Workloads; the scheduling gate of their
pods."""
SLICE_NAME = "kueue.x-k8s.io/workload-slice-name"
"""On each Workload of such a job, and on its pods: the name of its first Workload."""
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
"""On a Workload: namespace/name of the Workload that it replaces."""

POD_SET_LABEL = "kueue.x-k8s.io/podset"
WORKLOAD_ANNOTATION = "kueue.x-k8s.io/workload"
CLUSTER_QUEUE_LABEL = "kueue.x-k8s.io/cluster-queue-name"
LOCAL_QUEUE_LABEL = "kueue.x-k8s.io/local-queue-name"

QUOTA_RESERVED, ADMITTED, EVICTED = "QuotaReserved", "Admitted", "Evicted"
REQUEUED, FINISHED, PODS_READY = "Requeued", "Finished", "PodsReady"
