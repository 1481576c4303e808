"""A scheduler that places one pod at a time by kube-scheduler's rules, so that a cluster works without other parts."""
