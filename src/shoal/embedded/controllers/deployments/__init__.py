"""The Deployment controller: ReplicaSets for each template, and rollouts from an old one to a new one."""
