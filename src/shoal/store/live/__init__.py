"""A Kubernetes API server as controllers and simulated kubelets use it: one port, caches, queues, a clock."""
