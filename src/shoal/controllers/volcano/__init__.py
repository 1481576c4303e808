"""Controllers for Volcano's queues, pod groups and jobs, for clusters in which Volcano itself does not run."""
