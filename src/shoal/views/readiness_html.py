"""A readiness report as one HTML page without scripts and without anything from other servers."""

from __future__ import annotations

from html import escape

from shoal.policy.readiness.outcomes import ReadinessItem, ReadinessReport
from shoal.units.visible_text import visible
from shoal.views.readiness_text import counted

_STYLE = """
body { font-family: system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; color: #1b1f24; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid #d0d7de; }
code { white-space: pre-wrap; overflow-wrap: anywhere; }
.pass { color: #116329; } .fail { color: #a40e26; font-weight: bold; } .manual, .not-run { color: #7d4e00; }
.not-applicable { color: #57606a; }
""".strip()


def readiness_html(report: ReadinessReport, cluster: str, when: str) -> str:
    """`when`: the time of the report, as text."""
    sections = dict.fromkeys(item.section for item in report.items)
    body = "\n".join(
        f"<h2>{escape(section)}</h2>\n<table>\n<tr><th>Check</th><th>State</th><th>Evidence and fix</th></tr>\n"
        + "\n".join(_row(item) for item in report.items if item.section == section)
        + "\n</table>"
        for section in sections
    )
    title = f"Readiness of {_shown(cluster)}"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"<p>{_shown(when)}. {_shown(counted(report))}.</p>\n{body}\n</body>\n</html>\n"
    )


def _row(item: ReadinessItem) -> str:
    told = [f"<p>{_shown(text)}</p>" for text in item.evidence]
    if item.fix:
        told.append(f"<p>Fix: {_shown(item.fix)}</p>")
    told += [f"<p><code>{_shown(command)}</code></p>" for command in item.commands]
    name = f"{_shown(item.title)}<br><code>{_shown(item.id)}</code>"
    state = f'<td class="{item.state.replace(" ", "-")}">{item.state}</td>'
    return f"<tr><td>{name}</td>{state}<td>{''.join(told)}</td></tr>"


def _shown(text: str) -> str:
    return escape(visible(text))
