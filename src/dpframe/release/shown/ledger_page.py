"""A ledger as one HTML page: its budgets with their charges, the remaining losses, and forecasts.

The page has its own style and drawings. It loads no other file, runs no script, and all texts in it
are escaped.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from html import escape

import polars as pl

from dpframe.budget import PENDING, Budget, Charge, Ledger, Loss, Terms, account
from dpframe.fields import Names
from dpframe.plan import render_html
from dpframe.safe_text import visible

_WIDTH, _HEIGHT, _LEFT, _BELOW = 640, 150, 46, 18
_LINES = 1000  # the largest number of charges of a budget that are listed; these are the latest
_COLORS = {"spent": "#2c5f8a", "planned": "#9bbcd6", "expected": "#d9d9d9"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1d2f3f;max-width:60em;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #d5dee6}
table{border-collapse:collapse;font-size:.85em}th{border-bottom:1px solid #9bbcd6}
td,th{text-align:left;padding:.15em .6em;vertical-align:top}
.bar{background:#eef3f7;height:1em;width:100%;border-radius:3px}
.bar i{display:block;height:1em;background:#2c5f8a;border-radius:3px}
.wide{overflow-x:auto}.note{color:#a33}svg text{font-size:11px;fill:#1d2f3f}
"""


def ledger_page(ledger: Ledger) -> str:
    """All budgets of a ledger as one HTML page."""
    parts = [_section(name, ledger.budget(name)) for name in ledger.budgets()]
    body = "".join(parts) or "<p>No budget has been made in this ledger.</p>"
    now = f"{account.now():%Y-%m-%d %H:%M} UTC"
    return (
        "<!DOCTYPE html><html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        "content='width=device-width'><title>Privacy "
        f"budgets</title><style>{_STYLE}</style></head><body><h1>Privacy "
        f"budgets</h1><p>{escape(repr(ledger))}, as of {now}.</p>{body}</body></html>\n"
    )


def _size(loss: Loss) -> float:
    return loss.epsilon if loss.rho is None else loss.rho


def _section(name: str, budget: Budget) -> str:
    """One budget."""
    part = min(_size(budget.spent) / _size(budget.limit), 1.0)
    failed, unacknowledged = budget.failures
    warned = (
        f"<p class='note'>{failed} releases failed after the charge, {unacknowledged} not "
        "acknowledged.</p>"
        if failed
        else ""
    )
    told = budget.forecast()
    history = budget.history()
    shown = history[-_LINES:]
    earlier = (
        f"<p>The latest {_LINES:,} of {len(history):,} charges.</p>"
        if len(history) > len(shown)
        else ""
    )
    protects = budget.protects
    subject = "" if protects is None else f" Protected: {protects}."
    drawings = "".join(
        f"<h3>{escape(of)}</h3>{drawing(table)}"
        for (of,), table in told.table.group_by("of", maintain_order=True)
        if isinstance(of, str)
    )
    items = [f"<li>{escape(line)}</li>" for line in (*told.words, *cap_words(budget))]
    standing = f"<p>{escape(budget.standing.words)}</p>" if budget.terms is Terms.EITHER else ""
    return (
        f"<h2>{escape(name)}</h2><p>{escape(str(budget.spent))} spent of "
        f"{escape(str(budget.limit))}, {escape(str(budget.remaining))} left; accountant "
        f"{escape(budget.accountant)}.{escape(subject)}</p>{standing}<div class='bar'><i "
        f"style='width:{100 * part:.1f}%'></i></div>{warned}<ul>{''.join(items)}</ul>{drawings}"
        f"<h3>Charges</h3>{earlier}<div class='wide'>{_charges(shown)}</div>"
    )


def cap_words(budget: Budget) -> list[str]:
    """A sentence for each cap of a budget, and for each spender."""
    caps = budget.caps
    named = {cap.spender for cap in caps}
    others = [
        f"spender {who!r}: {spent} spent"
        for who, spent in budget.spenders.items()
        if who not in named
    ]
    return [visible(line) for line in (*(f"cap: {cap}" for cap in caps), *others)]


def _charges(lines: Sequence[Charge]) -> str:
    return render_html(*charge_rows(list(reversed(lines))))


def charge_rows(lines: Sequence[Charge]) -> tuple[Names, list[Names]]:
    """Charges as the header and the rows of a table;
    who spent has a column where somebody was named.
    """
    header: Names = ("#", "when (UTC)", "price", "status", "name", "release")
    rows: list[Names] = [
        (
            str(c.number),
            f"{c.when:%Y-%m-%d %H:%M:%S}",
            price_words(c),
            status_words(c),
            c.name or "",
            c.query,
        )
        for c in lines
    ]
    if any(c.policies for c in lines):
        header, rows = (
            (*header, "policy"),
            [(*row, "; ".join(c.policies)) for row, c in zip(rows, lines, strict=True)],
        )
    if any(c.spender for c in lines):
        header, rows = (
            (*header, "spender"),
            [(*row, c.spender or "") for row, c in zip(rows, lines, strict=True)],
        )
    if any(c.purpose for c in lines):
        header, rows = (
            (*header, "purpose"),
            [(*row, c.purpose or "") for row, c in zip(rows, lines, strict=True)],
        )
    return header, rows


def status_words(charge: Charge) -> str:
    """The status of a charge; of one that is pending, where it runs or was killed."""
    if charge.status != PENDING or charge.host is None:
        return charge.status
    return f"pending: {charge.by} on {charge.host}, process {charge.process}"


def price_words(charge: Charge) -> str:
    """The price of a charge in words; of one that was paid beforehand, the line that paid."""
    if charge.price is not None:
        return f"{charge.price} of #{charge.paid_by}"
    size = charge.epsilon if charge.rho is None else charge.rho
    if charge.paid_by is not None and not size:
        return f"paid by #{charge.paid_by}"
    main = f"ε = {size:g}" if charge.rho is None else f"ρ = {size:g}"
    return main + (f", δ = {charge.delta:g}" if charge.delta else "")


def drawing(table: pl.DataFrame) -> str:
    """The total loss that was spent, day by day, as an SVG.
    Input: the rows of a forecast for one budget.
    """
    days = table.get_column("day").to_list()
    first, last = days[0], days[-1]
    span = max((last - first).days, 1)
    limit = float(table.get_column("limit")[0])
    top = max(limit, float(table.get_column("total").to_numpy().max()))

    def across(day: dt.date) -> float:
        return float(_LEFT + (day - first).days / (span + 1) * (_WIDTH - _LEFT))

    width = max((_WIDTH - _LEFT) / (span + 1), 0.5)
    bars = []
    for day, total, kind in table.select("day", "total", "kind").iter_rows():
        height = total / top * (_HEIGHT - 10)
        bars.append(
            f"<rect x='{across(day):.1f}' y='{_HEIGHT - height:.1f}' width='{width:.2f}' "
            f"height='{height:.1f}' fill='{_COLORS[kind]}'/>"
        )
    at = _HEIGHT - limit / top * (_HEIGHT - 10)
    kinds = ", ".join(table.get_column("kind").unique(maintain_order=True).to_list())
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT + _BELOW}' width='100%' role='img' aria-label='spent "
        f"in total: {kinds}'>{''.join(bars)}<line x1='{_LEFT}' x2='{_WIDTH}' y1='{at:.1f}' "
        f"y2='{at:.1f}' stroke='#1d2f3f' stroke-dasharray='4 3'/><text x='{_LEFT - 4}' "
        f"y='{at + 4:.1f}' text-anchor='end'>{limit:.3g}</text><text x='{_LEFT - 4}' y='{_HEIGHT}' "
        f"text-anchor='end'>0</text><text x='{_LEFT}' "
        f"y='{_HEIGHT + _BELOW - 4}'>{first}</text><text x='{_WIDTH}' y='{_HEIGHT + _BELOW - 4}' "
        f"text-anchor='end'>{last}</text></svg><p>In total, day by day: {kinds}.</p>"
    )
