"""Writes what budgets have spent to the ConfigMap that admission reads, beside the Lease of Shoal.

The recorder has the history, and another process may decide about queues: the report is the only thing between them. It
is written every few minutes, so that the reader knows that it is current, and only where a budget is enforced, or was.
"""

from __future__ import annotations

import logging

from shoal.api.budget_report import CONFIG_KEY, CONFIG_MAP, BudgetReport
from shoal.api.wire import to_json
from shoal.client.context import Context
from shoal.client.item import Obj
from shoal.client.kind import CONFIG_MAPS
from shoal.client.port import Patch
from shoal.client.refusals import AlreadyExistsError, ForbiddenError, NotFoundError
from shoal.units.errors import ShoalError, UserError, Where

_log = logging.getLogger("shoal.cost")


class BudgetPublisher:
    def __init__(self, context: Context, namespace: str) -> None:
        self._api = context.api
        self._namespace = namespace
        self._has_written = False
        self._fault = ""

    async def publish(self, report: BudgetReport) -> None:
        """A failure is logged once, and the next report is written again."""
        is_enforced = any(one.enforced for one in report.budgets)
        if not (is_enforced or self._has_written) and await self._has_no_report():
            return
        try:
            await self._write({CONFIG_KEY: to_json(report).decode()})
        except ShoalError as error:
            if self._fault != str(error):
                self._fault = str(error)
                _log.warning("budgets hold no work back, because their report cannot be written: %s", error)
        else:
            self._has_written, self._fault = True, ""

    async def _has_no_report(self) -> bool:
        """The installer creates the ConfigMap without content."""
        try:
            found = await self._api.get(CONFIG_MAPS, self._namespace, CONFIG_MAP)
        except ShoalError:
            return True
        return CONFIG_KEY not in (found.obj().get("data") or {})

    async def _write(self, data: dict[str, str]) -> None:
        try:
            await self._api.patch(CONFIG_MAPS, self._namespace, CONFIG_MAP, Patch("merge", {"data": data}))
        except NotFoundError:
            meta: Obj = {"name": CONFIG_MAP, "namespace": self._namespace}
            try:
                await self._api.create(CONFIG_MAPS, {"metadata": meta, "data": data})
            except ForbiddenError as error:
                # `shoal install`, the chart and `shoal permissions` create it, so that the process needs no such right.
                where = Where(obj=f"ConfigMap {self._namespace}/{CONFIG_MAP}")
                fix = f"kubectl -n {self._namespace} create configmap {CONFIG_MAP}"
                raise UserError("not found, and may not be created", where=where, fix=fix) from error
            except AlreadyExistsError:
                await self._api.patch(CONFIG_MAPS, self._namespace, CONFIG_MAP, Patch("merge", {"data": data}))
