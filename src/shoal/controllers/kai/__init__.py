"""KAI's queues in a living cluster: who may run by quota and limit, who yields, and what the statuses tell."""
