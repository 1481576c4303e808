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

POD_SET = "kueue.x-k8s.io/podset"
WORKLOAD = "kueue.x-k8s.io/workload"
TO_CLUSTER_QUEUE = "kueue.x-k8s.io/cluster-queue-name"
TO_LOCAL_QUEUE = "kueue.x-k8s.io/local-queue-name"

QUOTA_RESERVED, ADMITTED, EVICTED = "QuotaReserved", "Admitted", "Evicted"
REQUEUED, FINISHED, PODS_READY = "Requeued", "Finished", "PodsReady"
