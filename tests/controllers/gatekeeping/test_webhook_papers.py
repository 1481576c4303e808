"""Certificates renew themselves before their end, and whoever trusted them goes on trusting them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from hypothesis import given, settings
from hypothesis import strategies as st

from build.depth import examples
from shoal.controllers.gatekeeping.webhook_certs import LEAF_LIFE, WebhookCerts, new_papers, renewed

_HOSTS = ("127.0.0.1", "hook.example.svc")
_START = datetime(2026, 1, 1, tzinfo=UTC)


def _leaf(papers: WebhookCerts) -> x509.Certificate:
    return x509.load_pem_x509_certificate(papers.certificate)


def _is_trusted(papers: WebhookCerts, bundle: bytes, now: datetime) -> bool:
    """Whether who knows that bundle accepts what the papers show."""
    leaf = _leaf(papers)
    for authority in x509.load_pem_x509_certificates(bundle):
        try:
            leaf.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112 - another one may have signed it
            continue
        times = (authority.not_valid_before_utc, authority.not_valid_after_utc)
        return times[0] <= now < times[1] and leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc
    return False


def test_good_papers_stay_as_they_are() -> None:
    papers = new_papers(_HOSTS, _START)
    assert renewed(papers, _HOSTS, _START + timedelta(days=30)) == papers


def test_a_certificate_is_renewed_a_month_before_its_end_by_the_same_authority() -> None:
    papers = new_papers(_HOSTS, _START)
    later = renewed(papers, _HOSTS, _START + LEAF_LIFE - timedelta(days=29))
    assert later.bundle == papers.bundle
    assert _leaf(later).serial_number != _leaf(papers).serial_number


def test_a_new_name_is_a_reason_for_a_new_certificate() -> None:
    papers = new_papers(_HOSTS, _START)
    assert renewed(papers, (*_HOSTS, "other"), _START).certificate != papers.certificate


def test_a_key_of_another_certificate_is_found_out() -> None:
    papers, other = new_papers(_HOSTS, _START), new_papers(_HOSTS, _START)
    mixed = WebhookCerts(papers.bundle, papers.authority_key, papers.certificate, other.key)
    assert renewed(mixed, _HOSTS, _START).certificate != papers.certificate
    wrong = WebhookCerts(papers.bundle, other.authority_key, papers.certificate, papers.key)
    assert renewed(wrong, _HOSTS, _START).authority_key != other.authority_key


def test_papers_that_nobody_can_read_are_refused() -> None:
    with pytest.raises(ValueError, match=r"."):
        renewed(WebhookCerts(b"no", b"no", b"no", b"no"), _HOSTS, _START)


@settings(max_examples=examples(20), deadline=None)
@given(st.lists(st.integers(min_value=1, max_value=29), min_size=1, max_size=40))
def test_at_no_time_is_anybody_turned_away(steps: list[int]) -> None:
    """Looked at once a month at least: who has the bundle of one look accepts what is shown at the next."""
    now, papers = _START, new_papers(_HOSTS, _START)
    for days in steps:
        now += timedelta(days=days)
        assert _is_trusted(papers, papers.bundle, now)
        later = renewed(papers, _HOSTS, now)
        assert _is_trusted(later, papers.bundle, now)
        assert _is_trusted(papers, later.bundle, now)
        papers = later
