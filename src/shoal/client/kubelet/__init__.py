"""What both kubelets of this project share, the one of simulated nodes and the one that runs processes and containers:
the progress of a pod, its status, restarts, and heartbeats."""
