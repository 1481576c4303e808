"""Which flavor each pod set of a workload gets, and what that would take."""
