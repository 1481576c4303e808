"""Commands that `shoal why` prints act on the cluster that it explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.addressed_commands import address_commands, cluster_flags, with_flags
from shoal.cli.cluster_access import AccessOptions
from shoal.client.http.access import Access
from shoal.views.explanation import HELP, Explanation
from shoal.views.remedies import Remedy

OWN = Access("https://127.0.0.1:6443", "own", "shoal", Path("/s/kubeconfig"), origin="`shoal up`")
FOUND = Access("https://example.com", "found", "prod", Path("/home/me/.kube/config"), origin="~/.kube/config")


@pytest.mark.parametrize(
    ("options", "access", "flags"),
    [
        (AccessOptions(), FOUND, []),
        (AccessOptions(context="staging"), FOUND, ["--context", "staging"]),
        (AccessOptions(kubeconfig=Path("a b")), FOUND, ["--kubeconfig", "a b"]),
        (AccessOptions(cluster="c", user="u"), FOUND, ["--cluster", "c", "--user", "u"]),
        (AccessOptions(), OWN, ["--kubeconfig", "/s/kubeconfig", "--context", "shoal"]),
    ],
    ids=["found by kubectl", "another context", "another file", "cluster and user", "a cluster unknown to kubectl"],
)
def test_flags_name_what_plain_kubectl_would_not_use(options: AccessOptions, access: Access, flags: list[str]) -> None:
    assert cluster_flags(options, access) == flags


def test_each_kubectl_of_a_pipeline_gets_the_flags() -> None:
    flags = ["--kubeconfig", "a b"]
    assert with_flags("kubectl get pod x -o yaml | kubectl replace --force -f -", flags) == (
        "kubectl --kubeconfig 'a b' get pod x -o yaml | kubectl --kubeconfig 'a b' replace --force -f -"
    )
    assert with_flags("shoal cluster heal n --gpu 3", flags) == "shoal cluster heal n --gpu 3 --kubeconfig 'a b'"
    assert with_flags("kubectl uncordon n", []) == "kubectl uncordon n"


def test_commands_are_changed_where_they_are_printed_and_where_they_are_listed() -> None:
    command = "kubectl uncordon n"
    explanation = Explanation("t/p", "waits", chapters=[("history", [command]), (HELP, ["Uncordon n.", command])])
    explanation.remedies = [Remedy("Uncordon n.", (command,))]
    address_commands(explanation, ["--context", "staging"])
    changed = "kubectl --context staging uncordon n"
    assert explanation.remedies[0].commands == (changed,)
    assert explanation.chapters == [("history", [command]), (HELP, ["Uncordon n.", changed])]
