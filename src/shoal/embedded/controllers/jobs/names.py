"""Defines the labels, annotations and finalizers that link a job and its pods."""

from __future__ import annotations

TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer of pods that are not counted yet."""
INDEX = "batch.kubernetes.io/job-completion-index"
"""The completion index, as annotation and label."""
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
JOB_NAME_LABELS = ("batch.kubernetes.io/job-name", "job-name")
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
CONTROLLER = "kubernetes.io/job-controller"
"""The default value of `managedBy`."""
