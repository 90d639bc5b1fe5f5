"""What is in a ledger, and its upkeep.

`dpframe ledger show|verify|export|report|forecast|resolve|acknowledge|transfer|close|caps`.
"""

from __future__ import annotations

import datetime as dt
import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dpframe.budget import (
    CAPS,
    PENDING,
    Budget,
    Charge,
    Ledger,
    NamedPeriod,
    Terms,
    account,
    per_cent_left,
    read_length,
    user_name,
)
from dpframe.budget.ledger import read_since
from dpframe.cli.commands import (
    BELOW,
    Said,
    add_for_ledger,
    loss_data,
    percent,
    positive,
    the_budget,
    the_budgets,
    typed,
)
from dpframe.errors import InvalidArgument
from dpframe.fields import FieldDict
from dpframe.plan import render_text
from dpframe.release.shown import cap_words, charge_rows, ledger_page, whole
from dpframe.safe_text import visible

NOTHING = "No budget has been made in this ledger."


def add_to(verbs: Any) -> None:
    """Add the commands of this file."""
    _add_reading(verbs)
    _add_changing(verbs)


def _add_reading(verbs: Any) -> None:
    show = add_for_ledger(
        verbs, "show", "budgets, what was spent and what is left, and every charge", _show
    )
    show.add_argument(
        "--warn-below",
        type=positive(percent),
        metavar="PERCENT",
        help="exit with 3 if less of a budget or part is left, such as 10%%",
    )
    about = (
        "exit with 3 if a release is pending for longer, such as 6h, or failures are not "
        "acknowledged"
    )
    show.add_argument("--warn-stuck", type=_length, metavar="TIME", help=about)
    about = "go over every entry: hashes, sums, limits, stored tables, the witness"
    verify = add_for_ledger(verbs, "verify", about, _verify)
    about = (
        "give a ledger whose witness is lost a new one, once, where no later copy of the ledger "
        "exists"
    )
    verify.add_argument("--new-witness", action="store_true", help=about)
    export = add_for_ledger(
        verbs, "export", "everything as JSON, CSV or dp-accounting events", _export
    )
    export.add_argument(
        "--format", choices=["json", "jsonl", "csv", "dp_accounting"], default="json"
    )
    export.add_argument(
        "--since",
        type=typed(read_since),
        metavar="TIME",
        help="only entries from this time on (UTC), such as 2026-01-31",
    )
    about = "one HTML page: budgets, what was spent when and on what, what is left, forecasts"
    report = add_for_ledger(verbs, "report", about, _report)
    report.add_argument(
        "--html", metavar="FILE", help="where the page is written; by default it is printed"
    )
    forecast = add_for_ledger(verbs, "forecast", "how long each budget lasts", _forecast)
    forecast.add_argument(
        "--warn-below",
        type=_length,
        metavar="TIME",
        help="exit with 3 if a budget lasts less, such as 7d",
    )
    for command in (show, forecast):
        command.add_argument("--budget", help="of this budget alone, by its name")


def _add_changing(verbs: Any) -> None:
    about = "mark a release that was killed as lost, so that its name may be paid again"
    resolve = add_for_ledger(verbs, "resolve", about, _resolve)
    resolve.add_argument("release", help="the name of the release, or the number of its charge")
    about = "record that somebody looked at the releases that failed, so that charges go on"
    acknowledge = add_for_ledger(verbs, "acknowledge", about, _acknowledge)
    caps = add_for_ledger(
        verbs, "caps", "show the caps of a budget, or change them for all who charge it", _caps
    )
    for name in CAPS:
        words = f"the most of one {name}, ε or ρ as the budget counts"
        caps.add_argument(f"--{name}", type=float, metavar="AMOUNT", help=words)
    caps.add_argument(
        "--zone", help="the time zone of the calendar, for a budget that has no caps yet"
    )
    about = "move a part of what may be spent now of one share to another"
    transfer = add_for_ledger(verbs, "transfer", about, _transfer)
    transfer.add_argument("share", help="the name of the share that gives")
    transfer.add_argument("to", help="the name of the share that receives")
    for loss in ("epsilon", "delta", "rho"):
        transfer.add_argument(
            f"--{loss}", type=float, metavar="AMOUNT", help=f"the {loss} that is moved"
        )
    close = add_for_ledger(verbs, "close", "end a share; its budget has back what is left", _close)
    close.add_argument("share", help="its name")
    for command in (transfer, close, resolve, acknowledge, caps):
        command.add_argument(
            "--budget", help="the name of the budget, where the ledger has several"
        )
    for command in (resolve, acknowledge, caps):
        command.add_argument("--by", help="who does it; by default the user of this machine")


class _Period(NamedTuple):
    text: str
    length: dt.timedelta


@typed
def _length(text: str) -> _Period:
    return _Period(text, read_length(text, "TIME"))


def _show(ledger: Ledger, asked: Any) -> Said:
    budgets = the_budgets(ledger, asked)
    text = "\n\n".join(_budget(name, budget) for name, budget in budgets.items()) or NOTHING
    going = {name: budget for name, budget in budgets.items() if not _is_over(name)}
    less = [
        (name, of)
        for name, budget in going.items()
        if asked.warn_below
        for of in _below(budget, asked.warn_below)
    ]
    text += "".join(
        f"\n{visible(', '.join(filter(None, one)))}: less than {asked.warn_below:g}% is left"
        for one in less
    )
    below, parts = (
        [name for name, of in less if of is None],
        [list(one) for one in less if one[1] is not None],
    )
    stuck = [
        line
        for name, budget in budgets.items()
        if asked.warn_stuck
        for line in _stuck(name, budget, asked)
    ]
    text += "".join(f"\n{visible(line)}" for line in stuck)
    data = {
        "budgets": {name: _budget_data(budget) for name, budget in budgets.items()},
        "below": below,
    }
    return Said(text, {**data, "parts_below": parts, "stuck": stuck}, BELOW if less or stuck else 0)


def _is_over(name: str) -> bool:
    """Whether a budget has the name of a period that is over, such as last year:
    no alarm is about it any more.
    """
    period = NamedPeriod.of(name)
    return period is not None and period.last < account.now().date()


def _stuck(name: str, budget: Budget, asked: Any) -> Iterator[str]:
    """Charges that somebody has to look at before the jobs of a budget
    go on, with the command to type.
    """
    command, of = (
        f"python -m dpframe ledger {{}} {asked.path}",
        f"--budget {shlex.quote(name)} --by NAME",
    )
    of += "" if asked.witness is None else f" --witness {shlex.quote(asked.witness)}"
    latest = account.now() - asked.warn_stuck.length
    for charge in budget.history():
        if charge.status == PENDING and charge.when < latest:
            release = shlex.quote(charge.name or str(charge.number))
            yield (
                f"{name}: {release} is pending. If it does not run: {command.format('resolve')} "
                f"{release} {of}"
            )
    if (number := budget.failures.unacknowledged) > 0:
        yield (
            f"{name}: {number} failures. When their cause is mended: "
            f"{command.format('acknowledge')} {of}"
        )


def _below(budget: Budget, least: float) -> list[str | None]:
    """The names of the parts of a budget that have less left than so many per
    cent; None is the budget itself.
    """
    return [of for of, left in per_cent_left(budget).items() if left < least]


def _budget(name: str, budget: Budget) -> str:
    title = f"{visible(name)}: {budget.spent} spent of {budget.limit}, {budget.remaining} left"
    title += f"; accountant {budget.accountant}"
    title += f"\n{budget.standing.words}" if budget.terms is Terms.EITHER else ""
    failed, unacknowledged = budget.failures
    if failed:
        title += f"\n{failed} failed after the charge, {unacknowledged} not acknowledged"
    title = "\n".join([title, *cap_words(budget)])
    header, rows = charge_rows(budget.history())
    return f"{title}\n{render_text(header, rows)}" if rows else title


def _budget_data(budget: Budget) -> FieldDict:
    losses = {name: loss_data(getattr(budget, name)) for name in ("limit", "spent", "remaining")}
    charges = [_charge_data(charge) for charge in budget.history()]
    return {
        "accountant": budget.accountant,
        **losses,
        "failures": budget.failures._asdict(),
        "charges": charges,
    }


def _charge_data(charge: Charge) -> FieldDict:
    return {**charge._asdict(), "when": charge.when.isoformat(), "price": loss_data(charge.price)}


def _verify(ledger: Ledger, _: Any) -> Said:
    numbers = ledger.verify()
    lines = [
        f"{visible(name)}: {count} entries, all as they were written"
        for name, count in numbers.items()
    ]
    return Said("\n".join(lines) or NOTHING, {"entries": numbers})


def _export(ledger: Ledger, asked: Any) -> Said:
    text = ledger.export(asked.format, asked.since).rstrip("\n")
    return Said(
        text, json.loads(text) if asked.json and asked.format in ("json", "dp_accounting") else text
    )


def _report(ledger: Ledger, asked: Any) -> Said:
    page, names = ledger_page(ledger), ledger.budgets()
    if asked.html is None:
        return Said(page.rstrip("\n"), {"html": page})
    with whole(asked.html) as path:
        Path(path).write_text(page, encoding="utf-8")
    text = f"{asked.html}: {', '.join(map(visible, names)) or 'no budget'}"
    return Said(text, {"file": asked.html, "budgets": names})


def _forecast(ledger: Ledger, asked: Any) -> Said:
    told = {name: budget.forecast() for name, budget in the_budgets(ledger, asked).items()}
    text, below = (
        "\n\n".join(f"{visible(name)}\n{forecast!r}" for name, forecast in told.items()),
        [],
    )
    if asked.warn_below is not None:
        until = account.now() + asked.warn_below.length
        going = {name: forecast.lasts for name, forecast in told.items() if not _is_over(name)}
        # nights of a part end as planned
        ends = {(name, "budget"): lasts["budget"] for name, lasts in going.items()}
        below = [
            list(which) for which, last in ends.items() if last is not None and last < until.date()
        ]
        lines = [
            f"{visible(name)}, {visible(of)}: lasts less than {asked.warn_below.text}"
            for name, of in below
        ]
        text += "".join(f"\n{line}" for line in lines)
    budgets = {
        name: {"lasts": forecast.lasts, "words": forecast.words} for name, forecast in told.items()
    }
    return Said(text or NOTHING, {"budgets": budgets, "below": below}, BELOW if below else 0)


def _resolve(ledger: Ledger, asked: Any) -> Said:
    release = int(asked.release) if asked.release.isdecimal() else asked.release
    line = ledger.resolve(the_budget(ledger, asked), release, asked.by)
    title = f"#{line.number} {visible(line.name or line.query)}"
    text = f"{title} is marked as lost; its charge stays, and its name may be paid again."
    return Said(text, _charge_data(line))


def _acknowledge(ledger: Ledger, asked: Any) -> Said:
    name = the_budget(ledger, asked)
    number = ledger.budget(name).acknowledge_failures(asked.by)
    return Said(
        f"{visible(name)}: {number} failures are acknowledged.",
        {"budget": name, "acknowledged": number},
    )


def _transfer(ledger: Ledger, asked: Any) -> Said:
    share = ledger.budget(the_budget(ledger, asked)).allocate(name=asked.share)
    loss = share.transfer(asked.to, asked.epsilon, asked.delta, asked.rho)
    text = (
        f"{visible(asked.to)} received {loss} of {visible(asked.share)}, which has "
        f"{share.remaining} left."
    )
    return Said(text, {"moved": loss_data(loss), "remaining": loss_data(share.remaining)})


def _close(ledger: Ledger, asked: Any) -> Said:
    budget = ledger.budget(the_budget(ledger, asked))
    loss = budget.allocate(name=asked.share).close()
    text = (
        f"{visible(asked.share)} is closed: the budget has {loss} back, and {budget.remaining} "
        "left."
    )
    return Said(text, {"returned": loss_data(loss), "remaining": loss_data(budget.remaining)})


def _caps(ledger: Ledger, asked: Any) -> Said:
    """Shows the caps, or changes those that were typed and leaves the others as they are."""
    name = the_budget(ledger, asked)
    typed = {cap: amount for cap in CAPS if (amount := getattr(asked, cap)) is not None}
    if asked.zone is not None and not typed:
        raise InvalidArgument(
            "--zone is the calendar of new caps: type one of these too, such as --day 0.5."
        )
    if typed:
        zone = {"zone": asked.zone} if asked.zone else {}
        ledger.change_caps(name, typed | zone, asked.by or user_name(), keep=True)
    lines = ledger.budget(name).caps
    data = [{**cap._asdict(), "spent": loss_data(cap.spent)} for cap in lines]
    return Said(
        "\n".join(map(str, lines)) or f"{visible(name)} has no caps.",
        {"budget": name, "caps": data},
    )
