"""The series of kube-state-metrics that rules and dashboards join with those of GPUs, for clusters without it."""
