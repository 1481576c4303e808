"""Who is asking: certificates, tokens of service accounts and of the administrator, and what is not accepted."""

from __future__ import annotations

from datetime import timedelta

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from build.identities import NOW, NOW_S, account, authority, running_pod
from build.readers import FixedReader
from shoal.api.subjects import common_name
from shoal.client.certificates import new_key
from shoal.client.kubelet.node_joining import REMOVED
from shoal.embedded.apiserver.calls import ANONYMOUS
from shoal.embedded.apiserver.security.authenticate import Authenticator
from shoal.embedded.apiserver.security.issuer_documents import configuration, key_set
from shoal.embedded.apiserver.security.joined_nodes import JoinedNodes
from shoal.embedded.apiserver.security.service_accounts import ISSUER, Bound, TokenSigner, TokenSubject
from shoal.embedded.apiserver.status import ApiError

SIGNER = TokenSigner(authority().signing_key)
BUILDER = TokenSubject("ci", "builder", "account-uid")


def recogniser(*objs: dict[str, object]) -> Authenticator:
    return Authenticator(authority(), SIGNER, FixedReader(account("ci", "builder"), *objs))


def refused(authenticator: Authenticator, token: str, now_s: int = NOW_S) -> bool:
    try:
        authenticator.authenticate(None, f"Bearer {token}", now_s)
    except ApiError as error:
        return (error.code, error.reason, error.message) == (401, "Unauthorized", "Unauthorized")
    return False


def test_a_client_certificate_is_user_and_groups() -> None:
    pair = authority().client("bob", ("devs",), NOW)
    actor = recogniser().authenticate(pair.parsed.public_bytes(Encoding.DER), None, NOW_S)
    assert (actor.name, actor.groups) == ("bob", ("devs", "system:authenticated"))
    assert actor.extra[0][0] == "authentication.kubernetes.io/credential-id"
    assert actor.extra[0][1][0].startswith("X509SHA256=")


def test_the_certificate_of_a_node_that_was_removed_is_refused_at_once() -> None:
    nodes = JoinedNodes(None)
    authenticator = Authenticator(authority(), SIGNER, FixedReader(), nodes)
    parsed = authority().client("system:node:n1", ("system:nodes",), NOW).parsed
    der = parsed.public_bytes(Encoding.DER)
    nodes.issue("n1", "key", (f"{parsed.serial_number:x}", NOW_S + 100.0), NOW_S)
    assert authenticator.authenticate(der, None, NOW_S).name == "system:node:n1"

    nodes.remove("n1", NOW_S)

    with pytest.raises(ApiError, match="the node n1 was removed from this cluster") as found:
        authenticator.authenticate(der, None, NOW_S)
    assert (found.value.code, found.value.reason) == (401, REMOVED)


def test_without_join_tokens_a_text_of_their_form_is_a_wrong_token() -> None:
    assert refused(recogniser(), f"{'a' * 6}.{'b' * 32}")


def test_of_several_common_names_the_last_counts_as_for_the_approver_and_the_signer() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one) for one in ("system:node:n1", "bob")])
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    der = made.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)
    assert recogniser().authenticate(der, None, NOW_S).name == "bob" == common_name(subject)


def test_a_certificate_counts_before_a_token() -> None:
    pair = authority().client("bob", (), NOW)
    der = pair.parsed.public_bytes(Encoding.DER)
    assert recogniser().authenticate(der, f"Bearer {authority().admin_token}", NOW_S).name == "bob"


def test_nothing_shown_is_anonymous_and_something_wrong_is_refused() -> None:
    assert recogniser().authenticate(None, None, NOW_S) == ANONYMOUS
    assert recogniser().authenticate(None, "Basic YTpi", NOW_S) == ANONYMOUS
    assert refused(recogniser(), "nonsense")


def test_the_administrators_token_is_a_superusers() -> None:
    actor = recogniser().authenticate(None, f"bearer {authority().admin_token}", NOW_S)
    assert actor.groups == ("system:masters", "system:authenticated")


def test_a_service_accounts_token_is_its_account() -> None:
    token = SIGNER.issue(BUILDER, [ISSUER], NOW_S, 600)
    actor = recogniser().authenticate(None, f"Bearer {token}", NOW_S + 599)
    assert actor.name == "system:serviceaccount:ci:builder"
    assert actor.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")
    assert actor.uid == "account-uid"
    assert dict(actor.extra)["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_a_token_ends_with_its_time_its_account_and_for_other_audiences() -> None:
    token = SIGNER.issue(BUILDER, [ISSUER], NOW_S, 600)
    assert refused(recogniser(), token, NOW_S + 611)
    assert refused(recogniser(), token, NOW_S - 11)
    assert refused(Authenticator(authority(), SIGNER, FixedReader()), token)
    reborn = FixedReader(account("ci", "builder", "another-uid"))
    assert refused(Authenticator(authority(), SIGNER, reborn), token)
    assert refused(recogniser(), SIGNER.issue(BUILDER, ["vault"], NOW_S, 600))


def test_a_token_bound_to_a_pod_ends_with_the_pod() -> None:
    pod = running_pod("ci", "job-1", "builder")
    reader = FixedReader(account("ci", "builder"), pod)
    authenticator = Authenticator(authority(), SIGNER, reader)
    token = SIGNER.issue(BUILDER, [ISSUER], NOW_S, 600, Bound("Pod", "job-1", "pod-uid", "node-1", "node-uid"))
    extra = dict(authenticator.authenticate(None, f"Bearer {token}", NOW_S).extra)
    assert extra["authentication.kubernetes.io/pod-name"] == ("job-1",)
    assert extra["authentication.kubernetes.io/node-name"] == ("node-1",)
    reader.drop(pod)
    assert refused(authenticator, token)
    reader.put(running_pod("ci", "job-1", "builder", uid="a-later-pod"))
    assert refused(authenticator, token)


@pytest.mark.parametrize(
    "change",
    [
        {"kubernetes.io": {}},
        {"kubernetes.io": "x"},
        {"exp": "soon"},
        {"aud": 5},
        {"iss": "https://elsewhere"},
        {"kubernetes.io": {"namespace": "ci", "serviceaccount": {"name": "builder", "uid": "account-uid"}, "pod": 1}},
    ],
)
def test_a_well_signed_token_of_another_form_is_refused(change: dict[str, object]) -> None:
    from shoal.client.certificates import parse_key

    good = jwt.decode(SIGNER.issue(BUILDER, [ISSUER], NOW_S, 600), options={"verify_signature": False})
    token = jwt.encode({**good, **change}, parse_key(authority().signing_key), "ES256")
    assert refused(recogniser(), token)


def test_a_token_signed_by_another_key_or_none_is_refused() -> None:
    assert refused(recogniser(), TokenSigner(new_key()).issue(BUILDER, [ISSUER], NOW_S, 600))
    claims = jwt.decode(SIGNER.issue(BUILDER, [ISSUER], NOW_S, 600), options={"verify_signature": False})
    assert refused(recogniser(), jwt.encode(claims, "", "none"))
    assert refused(recogniser(), "ä.ö.ü")


def test_others_can_check_a_token_with_what_is_published() -> None:
    published = jwt.PyJWKSet.from_dict(key_set(authority().signing_key))
    token = SIGNER.issue(BUILDER, ["vault"], NOW_S, 600)
    key = published[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(
        token,
        key,
        algorithms=["ES256"],
        audience="vault",
        options={"verify_exp": False, "verify_nbf": False, "verify_iat": False},
    )
    assert claims["iss"] == configuration("https://here")["issuer"]
    assert configuration("https://here")["jwks_uri"] == "https://here/openid/v1/jwks"
