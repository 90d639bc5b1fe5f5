"""Private choice of limits and bounds, inside the release.

A limit that is too low removes rows; a limit that is too high needs more noise. The best limit
balances both, and depends on how many rows people have. Noisy histograms in which each unit counts
once tell this; their noise is small beside that of the totals. For numbers of different values, the
best limit also depends on whether units share values. Noisy numbers of values in all groups
together, under low limits, tell this. The choice is post-processing of these noisy answers. The
totals under the chosen limits are a further release: composition of adaptively chosen parts, whose
ε (or ρ) add up.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from dpframe import engine
from dpframe.arrays import Floats
from dpframe.budget import Loss, read_epsilon
from dpframe.errors import InvalidArgument
from dpframe.fields import FieldDict, Fields
from dpframe.plan import Bounds, Limits, Question, limits_in_words, number, open_bounds_of
from dpframe.plan.steps import MOST
from dpframe.release.answer import RemainingRows
from dpframe.release.auto.clipping_bounds import as_typed, choose_bounds, fewest_people
from dpframe.release.auto.distinct_values import ValuesPosterior
from dpframe.release.auto.error_model import Expected, Judged, under_chosen
from dpframe.release.auto.model import MODEL
from dpframe.release.auto.narrowing import check_narrowing, narrowed, narrowing_words
from dpframe.release.auto.noisy_histograms import Seen, check_auto, noisy_histogram, noisy_values
from dpframe.release.auto.size_histograms import Groups, SizePosterior, read_groups, read_spread
from dpframe.release.auto.unit_sizes import UnitSizes
from dpframe.release.estimators import estimator_of
from dpframe.release.pricing import EpsilonPrice, NoiseKind, NoisePlan, Price, may_share

_TRIED = np.unique(np.minimum(np.rint(2 ** (np.arange(31 * 4 + 1) / 4)), MOST).astype(np.int64))
_LIMITS = (
    "Limits, for {}: {}. Of all limits that were tried, their expected error of the released "
    "columns, from bias and noise together, is the smallest. It is estimated from noisy histograms "
    "in which each unit counts once{}."
)
_AND_VALUES = " and noisy numbers of different values in all groups together"
_CHOSEN = (
    "Bounds of {!r}, for {}: from {} to {}. Their expected error of the released columns, from "
    "clipping and noise together, is the smallest. It is estimated from noisy histograms of "
    "values in which each unit counts once. Noise may hide up to {} people with values far beyond "
    "these bounds."
)
_TOO_FEW = (
    "Give bounds that you know without the data, or a larger price or share: dp.Auto(share=0.4). "
    "At this price {fewest:,} people have sure bounds in half of the releases, if all lie between "
    "them."
)
_UNSEEN = (
    "Bounds of {!r}, for {}: none could be chosen. There are too few people for the noise: "
    "the noisy histograms of values do not show where any of them are. So values are clipped to "
    "fixed bounds of the column or its type, from {} to {}, wherever the values are. "
    f"{_TOO_FEW}"
)
_DOUBTFUL = (
    "Bounds of {!r}, for {}: from {} to {}, a guess. There are too few people for the "
    "noise: the histograms show too few of them, or a noisy count does not show that most values "
    "lie between the bounds, by a test that is wrong of other bounds at most once in 100 times. "
    f"{_TOO_FEW}"
)
# Laws of values for each case of the units. There is one if groups have cases, too, since far more
# limits are tried.
_LAWS = 4


def check_choice(question: Question, price: Price) -> Loss:
    """The cost of a question with `dp.Auto`, whatever it will choose.
    Every histogram is tried on no rows.

    Errors: InvalidArgument if nothing of the price is left for the answer; InvalidPrice if too
            little is left
    """
    check_auto(price)
    if question.chosen_share >= 1:
        raise InvalidArgument(
            "dp.Auto(share=...): the shares add up to all of the price; leave some for the answer."
        )
    read_epsilon(
        price.part(1 - question.chosen_share).amount,
        f"what is left of {price.terms.value} for the answer",
    )
    if question.auto is not None:
        try_people(question, price)
        # as many totals as there may be, and limits for each
        for names in _columns_apart(question):
            apart = under_chosen(question, Limits(1, 1, 1), dict.fromkeys(names, Limits(2, 1, 1)))
            price.part(1 - question.chosen_share).plans(apart)
            engine.validate(apart)
    if question.narrowing:
        check_narrowing(question, price)
    for column in question.open_bounds:
        target = question.table.columns[column]
        engine.magnitude_profile(question, target, empty=True)
        engine.value_profile(question, target, [0.0, 1.0], empty=True)
    return price.loss(delta=question.private_keys or isinstance(price, EpsilonPrice))


def _stated_limits(question: Question, best: Judged) -> FieldDict:
    """The chosen limits and what is expected of them, as JSON."""
    with_bounds = [
        o.name
        for o in question.outputs
        if not any(open_bounds_of(question, m) for _, m in o.totals)
    ]
    errors = {name: float(f"{best.errors[name]:.3g}") for name in with_bounds}
    stated: FieldDict = {"limits": _named(best.limits), "expected_error": errors}
    if best.own:
        stated["limits_of_columns"] = {name: _named(one) for name, one in best.own.items()}
    return stated


def choose(
    question: Question, price: Price, seen: Seen | None = None
) -> tuple[Question, NoisePlan, FieldDict, RemainingRows | None]:
    """Choose limits and bounds, each for its share of the price, and the noise that the rest buys.

    Input:  a question with `dp.Auto`; the whole price; seen: takes the noisy histograms
    Output: the question with limits and bounds; its noise; the choice, its cost and its reason, as
            JSON; the estimated rows with and without limits, if the answer is corrected for removed
            rows. It never fails on data
    Bound:  each histogram costs its part of the price by `histogram_scale`, each number of
            different values by `noisy_values`. The answer has the rest of the price, and these
            parts add up. Later reads and questions depend on the rows only through earlier noisy
            answers
    Source: Amin, Kulesza, Muñoz, Vassilvitskii 2019, "Bounding user contributions", for the balance
            of bias and noise; Dwork, Rothblum, Vadhan 2010, and Bun, Steinke 2016,
            arXiv:1605.02065, for adaptive composition
    """
    rest, seen = price.part(1 - question.chosen_share), Seen() if seen is None else seen
    statement: FieldDict = {"cost": {"in": price.terms.value}, "reason": []}
    result, remaining = question, None
    if question.auto is not None:
        unit_sizes = read_people(question, price.part(question.limits_share), rest, seen=seen)
        best, remaining = _best(question, rest, unit_sizes)
        limits, own = best.limits, best.own
        result = under_chosen(result, limits, own)
        statement |= _stated_limits(question, best)
        with_noise = ""
        # which noise, and so which rule for keys, is better depends on the groups there are
        if question.private_keys:
            rest, statement["noise"] = replace(rest, noise=best.noise), best.noise.value
            with_noise = f", with {best.noise.value.capitalize()} noise"
        cost = statement["cost"]["limits"] = float(price.amount * question.limits_share)
        paid = f"{price.terms.sign} = {cost:.4g}"
        values = _AND_VALUES if _distinct(question) else ""
        words = f"{limits_in_words(result.limits)}{_apart(result, own)}{with_noise}"
        statement["reason"].append(_LIMITS.format(paid, words, values))
    bounds: dict[str, Bounds] = {}
    for column, auto in question.open_bounds.items():
        clipping = choose_bounds(result, column, price.part(auto.share), rest, seen)
        bounds[column] = clipping.bounds
        if clipping.values is not None:
            seen.values[question.table.columns[column].id] = clipping.values
        cost = statement["cost"][column] = float(price.amount * auto.share)
        low, high = (number(x) for x in as_typed(bounds[column], question.table.columns[column]))
        words = _CHOSEN if clipping.seen else _UNSEEN if clipping.values is None else _DOUBTFUL
        paid = f"{price.terms.sign} = {cost:.4g}"
        fewest, hidden = fewest_people(question, price), f"{clipping.hidden:,}"
        statement["reason"].append(words.format(column, paid, low, high, hidden, fewest=fewest))
        if not clipping.seen:
            statement.setdefault("unseen", {})[column] = f"from {low} to {high}"
    if question.narrowing:
        bounds, cost = narrowed(result, price, rest, seen), float(price.amount * question.narrowing)
        statement["cost"]["narrower bounds"] = cost
        statement["reason"].append(narrowing_words(bounds, f"{price.terms.sign} = {cost:.4g}"))
    if bounds:
        statement["bounds"] = {column: list(pair) for column, pair in bounds.items()}
    return *restored(question, statement, price), statement, remaining


def restored(question: Question, statement: Fields, price: Price) -> tuple[Question, NoisePlan]:
    """The question with its chosen limits and bounds, and its noise, from the
    stored statement of the choice.
    """
    result, rest = question, price.part(1 - question.chosen_share)
    if "limits" in statement:
        own = {
            name: Limits(**limits)
            for name, limits in statement.get("limits_of_columns", {}).items()
        }
        result = under_chosen(result, Limits(**statement["limits"]), own)
    bounds = statement.get("bounds", {})
    result = result.with_bounds(
        {c: as_typed(Bounds(*pair), question.table.columns[c]) for c, pair in bounds.items()}
    )
    noise = NoiseKind(statement["noise"]) if "noise" in statement else price.noise
    return result, replace(rest, noise=noise).plan(result)


def _named(limits: Limits) -> dict[str, int]:
    return {name: limit for name, limit in vars(limits).items() if isinstance(limit, int)}


def _apart(question: Question, own: Mapping[str, Limits]) -> str:
    """The limits of columns that have some of their own, in words."""
    words: dict[str, list[str]] = {}
    for name in own:
        limits = question.limits_of(own[name])
        words.setdefault(
            limits_in_words(limits if question.by else Limits(limits.max_rows)), []
        ).append(name)
    return "".join(f"; for {', '.join(names)}: {limits}" for limits, names in words.items())


# Limits


def try_people(question: Question, rest: Price, also: Collection[str] = ()) -> None:
    """Compute the histograms and numbers on no rows, so that they
    cannot fail after they are paid.
    """
    parts = _parts(question, rest, also)
    engine.size_profile(question, [name for name in parts if name != "values"], empty=True)
    for one in _distinct(question).values():
        engine.validate(one.with_limits(Limits(MOST)))


def read_people(
    question: Question,
    price: Price,
    rest: Price,
    also: Collection[str] = (),
    seen: Seen | None = None,
) -> UnitSizes:
    """The noisy histograms that matter to a question, and those in
    `also`, each for its part of a price.
    """
    parts = _parts(question, rest, also)
    raw = engine.size_profile(question, [name for name in parts if name != "values"])
    nodes = engine.NODES.astype(np.float64)
    seen = Seen() if seen is None else seen
    noisy = {
        name: noisy_histogram(price.part(parts[name]), question, counts, seen)
        for name, counts in raw.items()
    }
    keys = noisy.pop("keys", None)
    del raw
    seen.sizes |= noisy
    once = {"rows_per_group": MODEL.curve_once}
    read = {
        name: read_spread(counts, scale, nodes, once.get(name, MODEL.curve_end))
        for name, (counts, scale) in noisy.items()
    }
    first, peaks = read.get("rows", read.get("groups")), read.get("rows_per_group")
    assert first is not None
    needed_by_limits = "rows_per_group" in (*_histograms_of_limits(question), *also)
    peaks_matter = question.private_keys or _ratios(question) or needed_by_limits
    if (
        peaks is not None
        and not peaks_matter
        and first.units < MODEL.fewest_units * noisy["rows_per_group"][1]
    ):
        peaks = None
    unit_sizes = UnitSizes(first, read.get("groups"), peaks, None, float(question.cells or np.inf))
    if keys is not None:
        unit_sizes = replace(unit_sizes, keys=_key_groups(question, *keys, unit_sizes))
    return (
        _with_values(question, price.part(parts["values"]), rest, unit_sizes, seen)
        if "values" in parts
        else unit_sizes
    )


def _with_values(
    question: Question, price: Price, rest: Price, unit_sizes: UnitSizes, seen: Seen
) -> UnitSizes:
    """Unit sizes with laws of shared values, from a noisy number of
    different values of each column.

    It is under a low limit, since its noise grows with the limit and its part of the price is
    small: the square root of the limit that would be best if each row had a value of its own.
    """
    questions, keys, rows = _distinct(question), unit_sizes.keys, unit_sizes.rows
    times = _LAWS if keys is None or len(keys.sizes) == 1 else 1
    part, model = price.part(Fraction(1, len(questions))), Expected(question, unit_sizes, rest)
    best, _ = _best(question, rest, unit_sizes)
    limits = _within_limits(question, Limits(math.ceil(math.sqrt(best.limits.max_rows or 1))))
    prior = ValuesPosterior.beforehand(model.kept(Limits(1)).of_rows)
    laws = {
        column: prior.after(
            model.kept(limits).rows, *noisy_values(part, one.with_limits(limits), seen)
        )
        for column, one in questions.items()
    }
    rows = SizePosterior(
        np.repeat(rows.masses, times, axis=0), np.repeat(rows.odds, times) / times, rows.scale
    )
    return replace(
        unit_sizes, rows=rows, values={column: law.drawn(times) for column, law in laws.items()}
    )


def _distinct(question: Question) -> dict[str, Question]:
    """For each column whose different values are counted, the question of that count alone."""
    return {
        total.column.id: replace(question, aggregates=(one,))
        for one, output in zip(question.aggregates, question.outputs, strict=True)
        for _, total in output.totals
        if total.of_different_values and total.column is not None
    }


def _parts(question: Question, rest: Price, also: Collection[str] = ()) -> dict[str, Fraction]:
    """The histograms and numbers of different values that can matter,
    with their parts of the price.
    """
    by_units = [m.of_units for o in question.outputs for _, m in o.totals]
    ratios = _ratios(question)
    weights = {} if all(by_units) else {"rows": MODEL.part_of_rows}
    if question.by and question.cells != 1:
        normal = any(kind.normal for kind in rest.noises) and (
            question.cells is None or question.cells >= MODEL.gaussian_groups
        )
        if any(by_units) or question.private_keys or ratios:
            weights["groups"] = (
                MODEL.part_of_groups
                if any(by_units) or question.private_keys
                else MODEL.part_beside
            )
        if (normal or ratios or may_share(question, rest.noise)) and not all(by_units):
            weights["rows_per_group"] = (
                MODEL.part_beside if ratios or question.cells else MODEL.part_of_peaks
            )
        for name in [] if all(by_units) else [*_histograms_of_limits(question), *also]:
            weights.setdefault(name, MODEL.part_beside)
        if ratios or question.private_keys:
            weights["keys"] = MODEL.part_of_keys
    weights = weights or {"groups": 1}
    if _distinct(question):
        weights["values"] = MODEL.part_of_values
    return {name: Fraction(weight, sum(weights.values())) for name, weight in weights.items()}


def _ratios(question: Question) -> bool:
    """Whether the question has statistics other than counts and sums."""
    return any(not estimator_of(output).adds_up for output in question.outputs)


def _histograms_of_limits(question: Question) -> list[str]:
    """The histograms that are needed to know which rows the typed limits keep."""
    return judged_by(question.typed_limits)


def judged_by(limits: Limits) -> list[str]:
    """The histograms that are needed to know which rows some limits keep.

    For a limit on rows alone, the rows of units suffice. For limits on groups or rows per group,
    the number of a unit's groups matters: of 40 rows, a limit of one row per group keeps 1 if they
    are in one group, and 15 if they are in 15.
    """
    if limits.max_rows_per_group is not None:
        return ["groups", "rows_per_group"]
    return [] if limits.max_groups is None else ["groups"]


def _key_groups(question: Question, counts: Floats, scale: float, unit_sizes: UnitSizes) -> Groups:
    """The groups with their units, from the noisy histogram of keys.

    Listed groups are shrunk to their mean, so that they are as uneven as without noise. For groups
    found in the data there are several cases, one for each case of the unit sizes.
    """
    if question.cells is not None and len(counts) == question.cells:
        mean, variance = float(counts.mean()), float(counts.var())
        nearer = mean + math.sqrt(max(1 - 2 * scale**2 / max(variance, scale**2), 0.0)) * (
            counts - mean
        )
        return Groups(np.maximum(nearer, scale / 2)[None], np.ones((1, len(counts))))
    groups = unit_sizes.sizes[1]
    least = (
        float(np.quantile(groups, MODEL.groups_quantile)) if unit_sizes.groups is not None else 1.0
    )
    return read_groups(counts, scale, unit_sizes.rows.units, least, len(unit_sizes.rows.odds))


def _best(
    question: Question, rest: Price, unit_sizes: UnitSizes
) -> tuple[Judged, RemainingRows | None]:
    """The best candidate limits, with limits of their own for the
    columns that are better with these.

    It also returns the estimated rows with and without limits, if numbers are corrected for removed
    rows.
    """
    model, tried = Expected(question, unit_sizes, rest), dict[Limits, list[Judged]]()

    def best(more: Iterable[Limits]) -> Judged:
        tried.update({limits: model.judged(limits) for limits in more if limits not in tried})
        return model.least([option for options in tried.values() for option in options])

    choice = best(_candidates(question, unit_sizes, rest.noise))
    if unit_sizes.groups is not None:
        if question.private_keys or choice.limits.max_rows is None:
            choice = best(_near(question, choice.limits, "max_groups"))
        if choice.limits.max_rows is not None:
            choice = best(_near(question, choice.limits, "max_rows"))
    choice = _with_columns(question, model, unit_sizes, choice)
    return choice, model.left(choice.limits, model.kept(choice.limits))


def _with_columns(
    question: Question, model: Expected, unit_sizes: UnitSizes, choice: Judged
) -> Judged:
    """Limits of their own for the columns that are no counts or sums, where
    that is expected to be better.

    Each column of values is tried by itself: all limits on rows for it, then all limits that were
    tried for the others.
    """
    rows = _steps(_largest(unit_sizes.sizes[0]), 4)
    for names in _columns_apart(question):
        owns = [{**choice.own, **dict.fromkeys(names, Limits(r))} for r in rows]
        apart = model.least([option for own in owns for option in model.judged(choice.limits, own)])
        if choice.limits.max_rows is not None:
            near = [_within_limits(question, replace(choice.limits, max_rows=r)) for r in rows]
            apart = model.least(
                [option for limits in near for option in model.judged(limits, apart.own)]
            )
            apart = model.least(
                [option for own in owns for option in model.judged(apart.limits, own)]
            )
        choice = model.least([choice, apart])
    return choice


def _columns_apart(question: Question) -> list[list[str]]:
    """The released columns that may have limits of their own, those of
    one column of values together.

    None if all released columns are of one column of values.
    """
    by_values: dict[Any, list[str]] = {}
    pairs = zip(question.aggregates, question.outputs, strict=True)
    for (name, aggregate), output in pairs:
        if aggregate.limits == Limits():
            column = None if estimator_of(output).adds_up else getattr(aggregate, "column", name)
            by_values.setdefault(column, []).append(name)
    whole = len(by_values) == 1
    return [] if whole else [names for column, names in by_values.items() if column is not None]


def expected_errors(
    question: Question, unit_sizes: UnitSizes, rest: Price, choices: Iterable[Limits]
) -> list[dict[str, float]]:
    """Expected error of each column (column unit) under each of some limits."""
    model = Expected(question, unit_sizes, rest, choosing=False)
    options = [model.judged(limits) for limits in choices]
    return [dict(min(kinds, key=lambda one: float(one.cases.mean())).errors) for kinds in options]


def _candidates(question: Question, unit_sizes: UnitSizes, noise: NoiseKind) -> list[Limits]:
    """Limits to try, four to an octave (one if several limits are combined),
    up to about the largest sizes.
    """
    by_units = {m.of_units for o in question.outputs for _, m in o.totals}
    rows, groups, peaks = unit_sizes.sizes
    several = unit_sizes.groups is not None
    totals: list[int | None] = (
        list(_steps(_largest(rows), 4 if several else 1)) if False in by_units else [None]
    )
    widths: list[int | None] = [None]
    if several and (question.private_keys or True in by_units):
        widths = [*_steps(float(np.quantile(groups, MODEL.widest)), 4)]
    heights: list[int | None] = [None]
    if unit_sizes.peaks is not None:
        heights += _steps(_largest(peaks), 4)
    # noise that groups share hides all rows of a unit
    if unit_sizes.peaks is not None and not question.private_keys:
        totals.append(None)
    candidates = [
        Limits(total, width if total else question.cells, height)
        for total in totals
        for width in widths
        for height in heights
        if (height is None and total is not None)
        or (height and (total is None or height < total or total == 1))
        if width is None or total is None or width <= total
    ]
    if by_units == {True}:
        # where more groups need no more noise
        shared = [question.cells] if may_share(question, noise) else []
        candidates = [Limits(None, width, None) for width in (*widths, *shared)]
    return list(dict.fromkeys(_within_limits(question, limits) for limits in candidates))


def _largest(sizes: Floats) -> float:
    """The largest size in most cases.
    In a few cases the noise looks like a unit with a billion rows.
    """
    return float(np.quantile(sizes.max(axis=1), MODEL.largest))


def _near(
    question: Question, limits: Limits, name: Literal["max_rows", "max_groups"]
) -> list[Limits]:
    """Limits with neighbouring nodes in place of one of them."""
    rows, groups, peak = limits.max_rows, limits.max_groups, limits.max_rows_per_group
    at = int(np.searchsorted(_TRIED, getattr(limits, name) or 1))
    nodes = [int(x) for x in _TRIED[max(at - 3, 0) : at + 4]]
    neighbours = [
        Limits(x, groups, peak) if name == "max_rows" else Limits(rows, x, peak) for x in nodes
    ]
    return [_within_limits(question, x) for x in neighbours]


def _within_limits(question: Question, limits: Limits) -> Limits:
    """Limits to try, within those that were typed."""
    return replace(limits.and_also(question.typed_limits), auto=None)


def _steps(largest: float, every: int) -> list[int]:
    """Sizes up to a little beyond the largest: every `every`-th of four to an octave."""
    nodes = _TRIED[max(2.0 * largest if every == 1 else largest, 1.0) >= _TRIED]
    return sorted({int(x) for x in [*nodes[nodes <= 4], *nodes[::-1][::every]]})
