"""A Kubernetes cluster in Python: API server, generic controllers, a simple scheduler, and simulated nodes with GPUs.

It imports the ground layer (`units`, `devices`, `api`, `data`, `prometheus`), the admission rules of `shoal.policy` and
`shoal.client`, and nothing of Shoal's scheduling. The exceptions of `scheduler/` are listed in the import contract.
"""
