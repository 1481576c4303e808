"""`shoal cost --charge`: who pays what, in which mode."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.completion_values import one_of
from shoal.cli.known_names import check_known
from shoal.units.errors import UserError, Where, excerpt

if TYPE_CHECKING:
    from decimal import Decimal

    from shoal.cli.cost_source import CostFacts
    from shoal.cost.chargeback import ChargePolicy
    from shoal.cost.report import CostReport
    from shoal.cost.statement import GroupOf, Period

_CHARGES = ("showback", "request", "usage", "quota", "rate-card")
_IDLE = ("none", "platform", "even", "weighted")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,4})?)%?")
_HUNDRED = 100


@dataclass(frozen=True, kw_only=True)
class ChargeOptions:
    charge: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="Show who pays instead: showback, or by request, usage, quota or rate-card.",
            autocompletion=one_of(_CHARGES),
        ),
    ] = ""
    idle: Annotated[
        str,
        typer.Option(
            metavar="MODE",
            help="With --charge: what is left over is divided even or weighted, is the platform's, or is shown (none).",
            autocompletion=one_of(_IDLE),
        ),
    ] = _IDLE[0]
    borrowed_discount: Annotated[
        str,
        typer.Option(metavar="PERCENT", help="With --charge: GPUs beyond the nominal quota of the queue cost less."),
    ] = ""
    refund_preempted: Annotated[
        bool, typer.Option("--refund-preempted", help="With --charge: work that was preempted costs nothing.")
    ] = False

    def check(self) -> None:
        check_known(self.idle, _IDLE, "mode", Where(path="--idle"))
        self._discount_ppm()
        if self.charge:
            check_known(self.charge, _CHARGES, "mode", Where(path="--charge"))
            if self.charge == _CHARGES[0] and (self.borrowed_discount or self.refund_preempted):
                raise UserError("showback books nothing, so it has no discount and no refund", fix="write request")
        elif self != ChargeOptions():
            option = next(name for name, is_given in self._given() if is_given)
            raise UserError(f"{option} is only for --charge", fix="write --charge request")

    def policy(self, facts: CostFacts, by: str) -> ChargePolicy:
        from shoal.cost.chargeback import CHARGE_MODES, IDLE_MODES, ChargePolicy

        return ChargePolicy(
            mode=next(one for one in CHARGE_MODES if one == self.charge),
            idle=next(one for one in IDLE_MODES if one == self.idle),
            borrowed_discount_ppm=self._discount_ppm(),
            refunds_preempted=self.refund_preempted,
            rate_card=facts.file.rate_card,
            quota_hours=self._quota_hours(facts, by) if self.charge == "quota" else {},
            quota_day=1 if self._quotas_since(facts, by) else 0,
        )

    def group_of(self, facts: CostFacts, by: str) -> GroupOf:
        from shoal.cost.quota_hours import quota_dimension
        from shoal.cost.statement import dimension

        return quota_dimension(facts.quotas(), by) if self._has_recorded_quotas(facts) else dimension(by)

    def notes(self, facts: CostFacts, by: str) -> list[str]:
        from shoal.units.calendar_windows import rfc3339

        since = self._quotas_since(facts, by)
        if not since:
            return []
        return [f"quotas are recorded since {rfc3339(since)}: only what they left since is charged to their holders"]

    def period(self, facts: CostFacts, by: str) -> Period:
        """With the moment inside the window, if any, since when quotas are known."""
        from shoal.cost.statement import Period, whole_period

        since = self._quotas_since(facts, by)
        return Period(facts.window, (facts.window.start_ms, since)) if since else whole_period(facts.window)

    def _quotas_since(self, facts: CostFacts, by: str) -> int:
        """0 where they are known of the whole window."""
        if not self._has_recorded_quotas(facts):
            return 0
        known = (one.start_ms for one in facts.quotas() if (one.kind == "namespace") == (by == "namespace"))
        since = min(known, default=0)
        return since if since > max(facts.window.start_ms, facts.since_ms) else 0

    def _has_recorded_quotas(self, facts: CostFacts) -> bool:
        return self.charge == "quota" and not facts.file.quotas

    def _quota_hours(self, facts: CostFacts, by: str) -> dict[str, Decimal]:
        """Raises UserError where no quota is known."""
        from decimal import Decimal

        from shoal.cost.quota_hours import QUOTA_DIMENSIONS, quota_hours
        from shoal.units.calendar_windows import HOUR_MS

        if not self._has_recorded_quotas(facts):
            hours = Decimal(facts.window.length_ms) / HOUR_MS
            return {name: gpus * hours for name, gpus in facts.file.quotas.items()}
        written = "or write in the price file quotas: {NAME: GPUS}"
        if by not in QUOTA_DIMENSIONS:
            kinds = "--by queue (ClusterQueues, queues of KAI and Volcano) or --by namespace (ResourceQuotas)"
            fix = f"write {kinds}, {written}"
            raise UserError(f"no quota is known of a {by}", where=Where(path="--charge quota"), fix=fix)
        found = quota_hours(facts.quotas(), facts.window, by)
        if not found:
            objects = "ResourceQuota" if by == "namespace" else "queue"
            what = f"no {objects} with a quota of GPUs was recorded in the window"
            raise UserError(what, where=Where(path="--charge quota"), fix=f"write --charge request, {written}")
        return found

    def _given(self) -> list[tuple[str, bool]]:
        return [
            ("--idle", self.idle != _IDLE[0]),
            ("--borrowed-discount", bool(self.borrowed_discount)),
            ("--refund-preempted", self.refund_preempted),
        ]

    def _discount_ppm(self) -> int:
        from decimal import Decimal

        if not self.borrowed_discount:
            return 0
        found = _PERCENT.fullmatch(self.borrowed_discount)
        if found is None or Decimal(found[1]) > _HUNDRED:
            where, fix = Where(path="--borrowed-discount"), "write a percentage from 0 to 100, as in 30"
            raise UserError(f"{excerpt(self.borrowed_discount)} is no percentage", where=where, fix=fix)
        return int(Decimal(found[1]) * 10_000)


def charged(facts: CostFacts, options: ChargeOptions, by: str) -> CostReport:
    """The report whose rows `write_charges` divides."""
    import msgspec

    from shoal.cost.chargeback import charged_dimension
    from shoal.cost.report import cost_report

    records = facts.records()
    group_of = charged_dimension(options.group_of(facts, by))
    report = cost_report(records, options.period(facts, by), group_of, facts.basis(records.machines))
    return msgspec.structs.replace(report, notes=[*report.notes, *options.notes(facts, by)])


def write_charges(facts: CostFacts, report: CostReport, options: ChargeOptions, by: str, output: str) -> None:
    from shoal.cli.formats import console, write
    from shoal.cost.chargeback import charges
    from shoal.views.cost_charges import charge_rows, show_charges

    rows = charge_rows(charges(report.rows, options.policy(facts, by)))
    if output == "table":
        show_charges(console(), rows, by, facts.file.currency)
        return
    document = {"currency": facts.file.currency, "by": by, "mode": options.charge, "charges": rows}
    write({**document, "partial": report.is_partial}, output)
