"""What is said of connections that break while they end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from shoal.client.broken_connections import log_in_one_line


async def _report(**context: object) -> None:
    loop = asyncio.get_running_loop()
    log_in_one_line(loop)
    loop.call_exception_handler(context)


async def test_a_connection_that_broke_at_its_end_is_no_story(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        await _report(message="Fatal error on SSL protocol", exception=RuntimeError("the handler is closed"))
    assert caplog.records == []


async def test_every_other_report_is_told_whole(caplog: pytest.LogCaptureFixture) -> None:
    await _report(message="Task exception was never retrieved", exception=KeyError("odd"))
    (record,) = caplog.records
    assert "Task exception was never retrieved" in record.getMessage()
    assert record.exc_info
