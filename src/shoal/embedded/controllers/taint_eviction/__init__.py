"""The taint eviction controller, which deletes pods that do not tolerate the NoExecute taints of their nodes."""
