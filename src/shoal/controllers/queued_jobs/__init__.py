"""Jobs of every kind and the Workloads that stand for them in queues."""
