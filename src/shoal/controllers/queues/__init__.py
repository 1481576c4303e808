"""Decides the admission of Kueue Workloads on a cluster.

- `admission_loop.py` joins the parts: in each round of the scheduling loop it takes in changes (`event_handlers.py`),
  runs the discipline (`admission_cycles.py`) and hands places to pods.
- `workload_cache.py` holds the queues and the Workloads as they were read last.
- `node_capacity.py` keeps capacity on nodes for admitted Workloads, with `placeholders/` until their pods exist
  (`pod_arrivals.py`) and while a lost pod is replaced (`replacement_pods.py`).
- `workload_status/` writes the statuses of Workloads; `queue_statuses.py` those of queues and cohorts.
- `pod_gates/` opens scheduling gates of pods that other schedulers place.
"""
