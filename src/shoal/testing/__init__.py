"""Runs a Kubernetes cluster inside a test session: for developers of operators and controllers in Python.

`__all__` is the public API; docs/testing.md lists the same names. Names load on first use, because pytest imports this
package in every session of an environment in which Shoal is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.testing.cluster import KubeCluster, KubeClusterOptions

__all__ = ["KubeCluster", "KubeClusterOptions"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shoal.testing import cluster

    return getattr(cluster, name)
