"""The rules of Kubernetes' admission plugins, without an API server: LimitRange, ResourceQuota and PriorityClass.

The embedded API server applies them to writes, and decisions about manifests to pods that do not exist yet. All
functions take objects as plain JSON values, because quotas count fields of any kind.
"""
