"""Kueue's words on jobs, pod templates and Workloads."""

from __future__ import annotations

JOB_UID = "kueue.x-k8s.io/job-uid"
PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
LONGEST = "kueue.x-k8s.io/max-exec-time-seconds"
STOPPING = "kueue.x-k8s.io/stopping"
"""On a job that was suspended and still has to get its templates back."""
IN_USE = "kueue.x-k8s.io/resource-in-use"
"""The finalizer of Workloads."""
COMPLETIONS_FOLLOW = "kueue.x-k8s.io/job-completions-equal-parallelism"

ELASTIC = "kueue.x-k8s.io/elastic-job"
"""An annotation of jobs that may change their size while they run, and of their Workloads; the gate of their pods."""
SLICE_NAME = "kueue.x-k8s.io/workload-slice-name"
"""On each Workload of such a job, and on its pods: the first one's name."""
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
"""On a Workload: namespace/name of the one whose place it takes."""

POD_SET = "kueue.x-k8s.io/podset"
WORKLOAD = "kueue.x-k8s.io/workload"
TO_CLUSTER_QUEUE = "kueue.x-k8s.io/cluster-queue-name"
TO_LOCAL_QUEUE = "kueue.x-k8s.io/local-queue-name"

QUOTA_RESERVED, ADMITTED, EVICTED = "QuotaReserved", "Admitted", "Evicted"
REQUEUED, FINISHED, PODS_READY = "Requeued", "Finished", "PodsReady"
