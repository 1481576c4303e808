"""Finds the cluster of a command.

Guarantees: the order is the flags, then KUBECONFIG, then the current context of ~/.kube/config, then a running `shoal
up`, then the service account of the pod. So a command of Shoal never uses another cluster than kubectl would use in the
same shell, unless kubectl has no cluster there. Rejected: a running `shoal up` before KUBECONFIG. A cluster that a user
forgot would receive commands that are meant for another one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.cluster_folder import cluster_folder

if TYPE_CHECKING:
    from shoal.client.http.access import Access
    from shoal.client.http.kubeconfig import KubeconfigChoice

_LOOPBACK = ("//127.0.0.1", "//localhost", "//[::1]")


def located(kubeconfig: Path | None, choice: KubeconfigChoice) -> Access:
    from shoal.client.http.locate import locate
    from shoal.embedded.apiserver.security.state_folder import running
    from shoal.units.errors import UserError

    def own() -> Path | None:
        found = running(cluster_folder(None))
        return None if found is None else Path(found.kubeconfig)

    try:
        return locate(kubeconfig, choice, fallback=own)
    except UserError as error:
        file = Path(error.where.file)
        if error.where.file and not file.exists() and ":" not in error.where.file:
            raise UserError(error.what, where=error.where, fix=_advice(file)) from None
        raise


def _advice(missing: Path) -> str:
    if missing == cluster_folder(None) / "kubeconfig":
        return "the cluster of `shoal up` does not run; start it with `shoal up`"
    return "name another file with --kubeconfig or KUBECONFIG; if `shoal up` wrote it, start the cluster again"


def silence_words(access: Access, words: str) -> str:
    """The words for a server that does not answer, with what to do. If it is one of `shoal up` they say how to start
    it."""
    from shoal.embedded.apiserver.security.kubeconfig import NAME
    from shoal.embedded.apiserver.security.state_folder import MARKER, is_claimed, running

    other = f"{words}; check that the cluster runs, or name another one with --kubeconfig, --context or KUBECONFIG"
    if access.file is None or access.name != NAME or not any(word in access.server for word in _LOOPBACK):
        return other
    folder, usual = access.file.parent, cluster_folder(None)
    if (folder / MARKER).exists():
        start = "shoal up" if folder == usual else f"shoal up --state {folder}"
        ended = f"the cluster of `shoal up` does not run at {access.server}; start it with `{start}`"
        return words if is_claimed(folder) else ended
    # The file may be shared with other clusters: `shoal up --kubeconfig FILE`.
    found = running(usual)
    if found is not None and found.url == access.server:
        return words
    return f"{words}; if it is a cluster of `shoal up`, it has ended: start it with `shoal up`"
