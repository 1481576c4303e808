"""The cookie of a session behind a proxy, and explanations of browsers that have gone."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from build.web_sites import KnownReports, StateFacts, served, story
from shoal.units.errors import UserError, Where
from shoal.views.explanation_document import StoryDocument
from shoal.web.server import WebSettings, trusted_proxies
from shoal.web.viewer import Viewer

VIEWERS = {"of-admin": Viewer()}
LOOPBACK = trusted_proxies(["127.0.0.0/8"], Where())


async def cookie(settings: WebSettings, **headers: str) -> str:
    async with served(StateFacts(), None, VIEWERS, settings=settings) as (url, client):
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        form = {"token": "of-admin"}
        async with client.post(f"{url}/sign-in", data=form, headers=sent, allow_redirects=False) as answer:
            assert answer.status == 303
            return answer.headers["Set-Cookie"]


@pytest.mark.parametrize("proto", ["https", "HTTPS, http"])
async def test_behind_a_trusted_proxy_with_https_the_cookie_is_sent_over_https_alone(proto: str) -> None:
    settings = WebSettings(port=0, trusted_proxies=LOOPBACK)
    assert "Secure" in await cookie(settings, X_Forwarded_Proto=proto)


async def test_a_proxy_without_https_gets_a_cookie_that_its_browser_sends() -> None:
    settings = WebSettings(port=0, trusted_proxies=LOOPBACK)
    assert "Secure" not in await cookie(settings, X_Forwarded_Proto="http")
    assert "Secure" not in await cookie(settings)


async def test_a_header_of_any_other_peer_is_not_believed() -> None:
    elsewhere = WebSettings(port=0, trusted_proxies=trusted_proxies(["10.0.0.5", "fd00::/8"], Where()))
    assert "Secure" not in await cookie(elsewhere, X_Forwarded_Proto="https")
    assert "Secure" not in await cookie(WebSettings(port=0), X_Forwarded_Proto="https")


@pytest.mark.parametrize("address", ["proxy", "", "10.0.0.0/99"])
def test_a_proxy_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="neither an address nor a network"):
        trusted_proxies([address], Where(path="--trusted-proxy"))


class EndlessReports(KnownReports):
    """Explains until it is cancelled."""

    def __init__(self) -> None:
        super().__init__(story=story())
        self.begun, self.cancelled = asyncio.Event(), asyncio.Event()

    async def explanation(self, kind: str, namespace: str, name: str, token: str) -> StoryDocument:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return story()


async def test_a_browser_that_leaves_ends_its_explanation() -> None:
    reports = EndlessReports()
    async with served(StateFacts(), reports, VIEWERS) as (url, _):
        client = aiohttp.ClientSession()
        headers = {"Authorization": "Bearer of-admin"}
        asked = asyncio.ensure_future(client.get(f"{url}/job/a/b?why", headers=headers))
        async with asyncio.timeout(30):
            await reports.begun.wait()
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            await client.close()
            await reports.cancelled.wait()
