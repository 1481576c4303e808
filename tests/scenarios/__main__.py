"""`python -m tests.scenarios PATH... [--json]`: runs every case below the folders and says what came of it."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from shoal.units.errors import ShoalError

from . import fairshare, judge, nodescore
from .case import Case
from .devices import labels, preferred, sharing
from .exporter import results as exporter
from .kueue import results as kueue
from .kueue.results import Options, results_of_case
from .mig import results as mig
from .result import Result, said
from .run import decide
from .upgrade import results as upgrade

_FAMILY = "schedulers"
_PLAIN = Options()


def results_of(folders: list[Path], options: Options = _PLAIN) -> list[Result]:
    found = []
    for folder in folders:
        files = sorted(folder.rglob("*.json")) if folder.is_dir() else [folder]
        for file in files:
            found += results_of_file(file, options)
    return found


def results_of_file(file: Path, options: Options) -> list[Result]:
    try:
        document = msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        return [Result(file.name, _FAMILY, "fail", 0, [f"not JSON: {error}"])]
    if not isinstance(document, dict):
        return []
    is_kueue = "scenarios" in document
    cases = document.get("scenarios" if is_kueue else "cases") or []
    judged: Callable[[dict[str, Any]], list[Result]]
    family, judged = _FAMILIES.get(str(document.get("family")), (_FAMILY, _alone))
    if is_kueue:
        family, judged = kueue.FAMILY, partial(results_of_case, options=options)
    return [
        result
        for number, each in enumerate(cases)
        for result in _guarded(each, f"{file.name} case {number}", family, judged)
    ]


def _guarded(raw: Any, fallback: str, family: str, judged: Callable[[dict[str, Any]], list[Result]]) -> list[Result]:
    """One case that breaks us is one failure with a reason: the others still count."""
    if not isinstance(raw, dict):
        return [Result(fallback, family, "fail", 0, [f"a case is an object, not {type(raw).__name__}"])]
    try:
        return judged({"id": fallback, **raw})
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told and counted
        return [Result(_id_of(raw, fallback), family, "fail", 0, [f"{type(error).__name__}: {error}"])]


def _alone(raw: dict[str, Any]) -> list[Result]:
    return [result_of(raw)]


_FAMILIES: Mapping[str, tuple[str, Callable[[dict[str, Any]], list[Result]]]] = {
    exporter.FAMILY: (exporter.FAMILY, exporter.results_of_case),
    mig.FAMILY: (mig.FAMILY, mig.results_of_case),
    labels.FAMILY: (labels.FAMILY, labels.results_of_case),
    preferred.FAMILY: (preferred.FAMILY, preferred.results_of_case),
    sharing.FAMILY: (sharing.FAMILY, sharing.results_of_case),
    upgrade.FAMILY: (upgrade.FAMILY, upgrade.results_of_case),
}
"""How the cases of a file that names its family are judged."""


def _id_of(raw: dict[str, Any], fallback: str) -> str:
    return str(raw.get("id", fallback))


def result_of(raw: dict[str, Any]) -> Result:
    if raw.get("usesNonDefaultGates") or raw.get("apiInvalid"):
        return Result(
            _id_of(raw, ""), _FAMILY, "out_of_scope", reason="uses gates that are off by default, or is invalid"
        )
    expect = said(raw.get("expect") or {})
    if raw.get("kind") == "fair-share":
        diff = fairshare.differences(said(raw), expect)
        return Result(_id_of(raw, ""), _FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)
    # The decision is made from a copy that has no expectation in it.
    try:
        case = msgspec.convert(said({name: value for name, value in raw.items() if name != "expect"}), Case)
    except msgspec.ValidationError as error:
        return Result(_id_of(raw, ""), _FAMILY, "fail", 0, [f"not in the form of a case: {error}"])
    if case.kind not in ("schedule", "node-score"):
        return Result(case.id, _FAMILY, "out_of_scope", reason=f"kind {case.kind or 'unknown'} is not known")
    if case.kind == "node-score":
        return _node_score(case, expect)
    try:
        outcome = decide(case)
    except ShoalError as error:
        return Result(case.id, _FAMILY, "fail", 0, [str(error)])
    diff, level = judge.differences(case, outcome, expect)
    notes = judge.device_notes(case, outcome, expect)
    return Result(case.id, _FAMILY, "fail" if diff else "pass", level, diff, notes=notes)


def _node_score(case: Case, expect: dict[str, Any]) -> Result:
    score = nodescore.score_of(case)
    if score is None:
        return Result(case.id, _FAMILY, "out_of_scope", reason=f"no score like {case.config.strategy}")
    diff = nodescore.differences(nodescore.ranking(case, score), expect)
    return Result(case.id, _FAMILY, "fail" if diff else "pass", 0 if diff else 2, diff)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("--all", action="store_true", dest="everything", help="run cases that do not count as well")
    parser.add_argument(
        "--end-to-end", action="store_true", help="run component cases as whole cycles too, where that should agree"
    )
    options = parser.parse_args(arguments)
    missing = [folder for folder in options.folders if not folder.exists()]
    if missing:
        sys.stderr.write(f"{missing[0]}: there is no such file or folder\n")
        return 2
    results = results_of(options.folders, Options(options.everything, options.end_to_end))
    totals = Counter(result.status for result in results)
    if options.as_json:
        document = {"cases": results, "totals": {status: totals[status] for status in ("pass", "fail", "out_of_scope")}}
        sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    else:
        for result in results:
            sys.stdout.write(f"{result.status:13}{result.id}{': ' + result.reason if result.reason else ''}\n")
            for line in result.diff:
                sys.stdout.write(f"             {line}\n")
            for line in result.notes:
                sys.stdout.write(f"             note: {line}\n")
        sys.stdout.write(", ".join(f"{count} {status}" for status, count in sorted(totals.items())) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
