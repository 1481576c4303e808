"""Controllers for KAI's queues and pod groups: admission by quota and limit, preemption, PodGroups and statuses."""
