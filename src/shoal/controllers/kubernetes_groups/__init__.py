"""The controller for the status of Kubernetes' own pod groups (`scheduling.k8s.io`)."""
