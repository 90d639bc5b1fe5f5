"""Settings of a series: the arguments that open it, and the form in which the
ledger stores them with the charge.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.budget import Allowance, Budget, Loss, Terms, loss_json, typed_number
from dpframe.errors import InvalidArgument, InvalidPrice, ReleaseMismatch
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Question, beyond_words, derivation, unit_words
from dpframe.plan.steps import check_limit, source_of
from dpframe.release.kinds.series.calendar import Calendar
from dpframe.release.kinds.series.noise import ReadAgain, SeriesNoise, planned_noise
from dpframe.release.kinds.series.questions import described_question
from dpframe.release.kinds.series.shape import LONGEST
from dpframe.release.kinds.series.unit_change import TotalChange, UnitChange, limits_typed
from dpframe.release.pricing import NoiseKind, Price, read_price
from dpframe.release.shown import statement


@dataclass(frozen=True)
class Settings:
    """The arguments of a series as they were typed.
    `horizon` is a number of periods, None for no end.

    With `enforce` each unit is counted only in the first `periods` periods in which it has rows.
    """

    every: str
    horizon: int | None
    periods: int
    typed: tuple[tuple[str, str], ...]
    noise: str
    enforce: bool = False

    @classmethod
    def read(
        cls,
        terms: Terms,
        every: object,
        horizon: object,
        periods: object,
        noise: object,
        *,
        enforce: bool = False,
        **price: object,
    ) -> Settings:
        """The settings from the arguments of `Budget.series`.
        Errors: InvalidArgument, InvalidPrice.
        """
        Calendar.read(every, dt.date(2000, 1, 1))
        if horizon is not None:
            horizon = check_limit(horizon, "horizon")
            if horizon > LONGEST:
                raise InvalidArgument(
                    f"horizon: a series has at most {LONGEST:,} periods; type horizon=None for no "
                    "end."
                )
        if periods is None:
            raise InvalidArgument(
                "budget.series: give the largest number of periods in which one unit is counted, "
                "over the whole horizon: unit_periods=1 if each person comes once, as in "
                "sign-ups; unit_periods=365 if a person may come on every day of a year. This "
                "number is not checked; privacy holds for units that keep to it. With "
                "enforce=True the later periods of other units are left out, and privacy holds "
                "for every unit."
            )
        number = check_limit(periods, "unit_periods")
        if all(amount is None for amount in price.values()):
            example = "rho=0.1" if terms is Terms.RHO else "epsilon=1.0"
            raise InvalidPrice(
                f"Give the price of all periods together: budget.series(..., {example})."
            )
        total = read_price(terms, noise=noise, **price)
        exact = tuple(
            (name, str(typed_number(amount, name)))
            for name, amount in price.items()
            if amount is not None
        )
        most = min(number, horizon or number)
        return cls(str(every), horizon, most, exact, total.noise.value, enforce and most != horizon)

    @classmethod
    def from_plan(cls, plan: Fields) -> Settings:
        """The settings from their stored form."""
        typed, enforce = tuple(plan["price"].items()), plan.get("enforce", False)
        return cls(
            plan["every"], plan["horizon"], plan["unit_periods"], typed, plan["noise"], enforce
        )

    def to_plan(self) -> FieldDict:
        """The stored form of the settings; a series is identified by its name and these."""
        return {
            "every": self.every,
            "horizon": self.horizon,
            "unit_periods": self.periods,
            **({"enforce": True} if self.enforce else {}),
            "price": dict(self.typed),
            "noise": self.noise,
        }

    def price(self, terms: Terms) -> Price:
        """The price of the whole horizon."""
        amounts: FieldDict = {name: Fraction(amount) for name, amount in self.typed}
        return replace(
            read_price(terms, noise=NoiseKind(self.noise).value, **amounts), typed=self.typed
        )


def opening_plan(settings: Settings, question: Question, *, alone: bool) -> FieldDict:
    """The plan that a series' name stands for: settings and question, without data."""
    rows = "of one period" if alone else "of earlier periods too"
    return {"series": {**settings.to_plan(), "rows": rows}, **described_question(question)}


def kept(
    name: str,
    settings: Settings,
    question: Question,
    budget: Budget | Allowance,
    start: dt.datetime,
    *,
    alone: bool,
) -> tuple[Loss, FieldDict]:
    """The loss of a series, and its stored form in the ledger, from which it can
    be continued without its query.

    Errors: those of `planned_noise`
    """
    price, change = settings.price(budget.terms), UnitChange.of(question, settings.periods)
    often = (
        ReadAgain.NEVER
        if alone
        else ReadAgain.AT_ENDS
        if settings.enforce
        else ReadAgain.EACH_NIGHT
    )
    noise = planned_noise(question, change, price, settings.horizon, often)
    cost = price.loss(delta=noise.normal)
    calendar = Calendar.read(settings.every, start)
    words = promise(settings, question, cost, noise, calendar, alone=alone)
    words.append(_lost(noise.repeated(change, price)))
    return cost, {
        "series": name,
        "start": start.isoformat(),
        "kind": source_of(question.step).data.kind,
        "by": list(question.by),
        "outputs": _outputs(question),
        "totals": [total.to_json() for total in change.totals],
        "limits": limits_typed(question),
        "words": words,
        "derivation": str(derivation(question)),
        "statement": _statement(name, question, noise, budget, cost, words),
        **noise.to_json(),
    }


def _outputs(question: Question) -> list[FieldDict]:
    """The released columns: name, value of one unit of the integer (column
    unit), and place of the total.
    """
    places = {allotment.total.key: place for place, allotment in enumerate(question.allotments)}
    return [
        {"name": output.name, "unit": str(total.unit), "total": places[total.key]}
        for output in question.outputs
        for _, total in output.totals
    ]


def bought(
    record: Fields, settings: Settings, question: Question, terms: Terms, *, alone: bool
) -> UnitChange:
    """The change of one unit that the noise of a series was bought for, from its stored form.

    Versions that did not store it bought noise for the question of the first period. If the
    question at hand needs exactly the noise that is stored, on the same grids, then this noise is
    enough for it, whatever that question was.

    Errors: ReleaseMismatch for a series of such a version and a question that needs other noise
    """
    if "totals" in record:
        totals = tuple(map(TotalChange.from_json, record["totals"]))
        return UnitChange(totals, settings.periods, question.table.relation)
    change = UnitChange.of(question, settings.periods)
    often = ReadAgain.NEVER if alone else ReadAgain.AT_ENDS
    noise = planned_noise(question, change, settings.price(terms), settings.horizon, often)
    needed = {"outputs": _outputs(question), **noise.to_json()}
    if any(record[part] != needed[part] for part in needed):
        raise ReleaseMismatch(
            "series.add: an earlier version of dpframe opened this series. It stored no limits "
            "and bounds with the noise, and this question needs other noise. Ask the question of "
            "the first period, or open another series. Nothing was spent."
        )
    return change


def promise(
    settings: Settings,
    question: Question,
    cost: Loss,
    noise: SeriesNoise,
    calendar: Calendar,
    *,
    alone: bool,
) -> list[str]:
    """The privacy guarantee of a series over its whole horizon, in sentences."""
    unit, number = unit_words(source_of(question.step).table), settings.periods
    end = "without an end" if settings.horizon is None else f"for {settings.horizon} periods"
    at_most = "one period" if number == 1 else f"{number} periods"
    more = "k² times the ρ" if cost.rho is not None else "k times the μ of the Gaussian noise"
    words = [
        f"A series of periods of {settings.every} from {calendar.label(0)} on, {end}.",
        f"Over the whole series one {unit} is promised {cost}: for everything that is ever "
        "published of it together, whichever periods are added, in whatever order, late or not "
        "at all.",
        _whose(settings, unit, at_most, more if noise.normal else "k times the ε"),
    ]
    sizes, weights = noise.shapes.parts[0].sizes, noise.shapes.parts[0].weights
    if alone:
        words.append(
            "Only single periods are measured, since the rows of earlier periods are not at hand: "
            "a running total adds up the noise of all of them. With on= or a function of the "
            "period, blocks of periods are measured too."
        )
    elif weights:
        words.append(
            f"Measured are weighted sums, each of a period and of up to {len(weights) - 1} that "
            "were added before it, whose rows are read again. Each sum has fresh noise."
        )
    elif len(sizes) > 1:
        words.append(
            f"Measured are single periods, and blocks of up to {', '.join(map(str, sizes[1:]))} "
            "periods."
        )
    return words


def _lost(repeated: Sequence[Loss]) -> str:
    """What a period costs whose answer was lost, in sentences.
    Input: of a period alone, and with its blocks.
    """
    least, most = map(str, repeated)
    longer = "" if least == most else f", and up to {most} if longer blocks end with it"
    return (
        "A period that is added again gives the stored answer, for nothing. If its answer was "
        "lost, as of a job that was killed after the charge, on_pending='retry', or 'wait' where "
        "its process was killed, measures it again. That is charged beside, each time: "
        f"{least}{longer}."
    )


def _whose(settings: Settings, unit: str, at_most: str, more: str) -> str:
    """The units for which the guarantee holds, in sentences.
    Input: more: the loss of a unit in k · at_most periods.
    """
    number = settings.periods
    if settings.periods == settings.horizon:
        return (
            f"The promise is for every {unit}: it may be counted in all periods "
            f"(unit_periods={number})."
        )
    if not settings.enforce:
        return (
            f"The promise is for a {unit} that is counted in at most {at_most} "
            f"(unit_periods={number}). That is declared, and nothing checks it. One in k times as "
            f"many periods has at most {more}."
        )
    which = "the first period" if number == 1 else f"the first {number} periods"
    return (
        f"The promise is for every {unit}. Each is counted in {which} in which it has rows, in the "
        f"order in which periods were added, and in no other (unit_periods={number}, "
        f"enforce=True). A {unit} with rows in no more periods loses nothing. Of others the later "
        "periods are left out: such numbers are of first periods, and are not scaled up. This "
        "rests on rows that do not change after their period was added."
    )


def _statement(
    name: str,
    question: Question,
    noise: SeriesNoise,
    budget: Budget | Allowance,
    cost: Loss,
    words: list[str],
) -> FieldDict:
    """The privacy statement of a series."""
    shape = noise.shapes.parts[0]
    # the scale is that of a sum in which the own period has the weight 1
    own, *earlier = shape.weights or (1,)
    sums = [f"weighted sums of up to {len(earlier) + 1}"] if shape.weights else []
    parts = sums or [f"blocks of up to {size}" for size in shape.sizes]
    rows = [
        {
            "column": f"{', '.join(allotment.names)}, {measured}",
            "aggregate": str(allotment.total.kind),
            "mechanism": mechanism.label,
            "scale": mechanism.scale * float(allotment.total.unit) / own,
            "threshold": None,
        }
        for measured, level in zip(parts, noise.mechanisms[0], strict=True)
        for allotment, mechanism in zip(question.allotments, level, strict=True)
    ]
    account = {
        "accountant": budget.accountant,
        "limit": loss_json(budget.limit),
        "remaining": loss_json(budget.remaining - cost),
        "failures": budget.failures._asdict(),
    }
    why, now = derivation(question), dt.datetime.now(dt.UTC).isoformat()
    unit = unit_words(source_of(question.step).table)
    items = statement(why, question.table.relation, unit, rows, cost, account, name=name, drawn=now)
    said = [*beyond_words(why.beyond), *why.rows]
    return {**items, "beyond": said, "keys": " ".join([items["keys"], *words])}
