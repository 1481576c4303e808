"""The Kubernetes client and controller toolkit: requests, watch caches, work queues, leader election and retries.

`port.py` defines the requests as a protocol. `http/` sends them to any API server;
`embedded/apiserver/inside` calls the embedded one in the same process.
"""
