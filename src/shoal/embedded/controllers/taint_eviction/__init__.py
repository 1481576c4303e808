"""Pods leave nodes whose NoExecute taints they do not tolerate, or not for ever."""
