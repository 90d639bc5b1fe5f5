"""Second moments of people: how far they differ, which says how exact a sample of them is.

People are the sample, not rows. Let one person have the sum S (measured from the middle of the
bounds) and the number of rows N in a group, both under the limits. A total over people who are
drawn at random has about the variance Σ S² over them, and a mean m has Σ (S - d·N)² / (Σ N)², with
d the distance of m from the middle (Cochran 1977, "Sampling Techniques", chapters 6 and 9). So
three sums over people are enough: Σ S², Σ S·N and Σ N². Each is measured where it is smallest,
since noise follows the largest change:

- with at most k rows, N·(k - N) lies in [0, k²/4]; Σ N² is k·Σ N minus its sum, and Σ N is released
  anyway
- with |S| <= h·N, S·(k - N) lies in [-h·k²/4, h·k²/4]; Σ S·N is k·Σ S minus its sum
- S² - k·h²·N/2 lies in [-k²·h²/2, k²·h²/2]; Σ S² is its sum and k·h²/2·Σ N

For people with one row each, the first two are 0 and need no price. Where values are 0 or 1 too,
all follows from what is released: p·(1 - p)·n.

Other statistics are functions of several totals. A person moves such a statistic by about ψ, the
sum of their parts of the totals, each multiplied by the derivative of the statistic for that total.
Its sampling variance is about Σ ψ² over people. The derivatives are taken at the noisy totals, so
that one more number is enough: `influence_total`.

Where a person may be in two groups, the difference of the two has about the sampling variance Σ (ψ
- ψ')² over people, with ψ and ψ' their influences on the two groups. This is Σ ψ² + Σ ψ'² - 2·Σ
ψ·ψ'. The last sum is one more number for each two groups: `between_totals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction

from dpframe.errors import InvalidBounds, UnsupportedOperation
from dpframe.plan.grid import Product, UnitMoment, ValueGrid
from dpframe.plan.scalars import check_choice
from dpframe.plan.statistics import Formula, ReleasedColumn
from dpframe.plan.totals import Total, TotalKind
from dpframe.plan.unit_limits import UnitLimits
from dpframe.theory.formulas.sensitivity import Contribution
from dpframe.theory.formulas.sensitivity import grouped as maps

# listed groups, up to which products between any two of them are paid for: see `between_totals`
MOST_COMPARED = 5
_BETWEEN = Fraction(1, 8)  # the weight of all of these products together
# of each factor of a product, so that a product and what is taken from it stay below 2^50
_BITS = 24
INFLUENCE_MOST = 2**16  # an influence at the clip, as an integer
_SAFE = 58  # bits of a partial that can be doubled and moved without wrapping


class Covers(Enum):
    """The subject of an interval: the noise alone, or the population
    that the people are a sample of.
    """

    NOISE = "noise"
    POPULATION = "population"

    def label(self, confidence: float) -> str:
        """The words for tables, charts and reports."""
        return (
            "noise only"
            if self is Covers.NOISE
            else f"{100 * confidence:g}% interval for the population"
        )

    @property
    def margins(self) -> str:
        """The words for 95% margins of error of the noise, or also of sampling."""
        return (
            "of the noise"
            if self is Covers.NOISE
            else "for the population, from noise and sampling of people"
        )


def read_covers(covers: object) -> Covers:
    """The typed coverage of intervals. Errors: InvalidArgument."""
    check_choice(covers, tuple(kind.value for kind in Covers), "covers")
    return Covers(covers)


def share_of(total: Total) -> Fraction:
    """The weight of a second moment when the price is split, where a released total
    of the same column has weight 1.

    A square has 1/4 and the others 1/8, as their ranges are: so a mean of people with one row pays
    1/9 of its price for its second moment, and one of people with many rows 1/5. Products between
    groups have 1/8 together, each total by its largest change, so that all have noise of one scale.
    Where they are paid for, one square has 1/4 and replaces the three moments of a mean, so a mean
    of people with many rows pays 3/19.

    Bound:  none is needed: any split keeps the price. Why these: with a part x of ε for the
            moments, the noise of a mean has the variance a/(1 - x)², and its sampling variance V is
            known up to b/x. The sum a/(1 - x)² + V + b/x is flat around its minimum.
            `benchmarks/coverage.py` gives the widths
    """
    assert total.moment is not None
    if total.between_groups:
        places = range(1, total.moment.groups)
        return (
            _BETWEEN
            * total.moment.others
            / sum(_others(place, total.moment.most_groups) for place in places)
        )
    if total.of_influence:
        of_mean = total.moment.counts is not None and len(total.moment.parts) == 2
        return Fraction(1, 4) if of_mean else Fraction(1, 2)
    return Fraction(1, 4) if total.moment.product is Product.SQUARE else Fraction(1, 8)


def with_moments(output: ReleasedColumn, unit_limits: UnitLimits) -> ReleasedColumn:
    """A released column with the second moments that its interval for the population needs.

    Errors: UnsupportedOperation for statistics without such an interval, with the line to type
    """
    statistic = _POPULATION.get(output.formula)
    if statistic is None or output.total.kind is TotalKind.DISTINCT:
        *nouns, last = (kind.plural for kind in _POPULATION.values())
        raise UnsupportedOperation(
            f"{unit_limits.what}: no interval for the population is known here for this statistic. "
            f"Ask for it by itself with release(..., covers='noise'); {', '.join(nouns)} and "
            f"{last} have covers='population'."
        )
    name, _ = output.totals[-1] if output.formula is Formula.COUNT else output.totals[0]
    moments = [*statistic.moments(output, unit_limits), *between_totals(output, unit_limits)]
    named = tuple(
        (f"{name.removesuffix('.sum')}.{_word_of(m.moment)}", m) for m in moments if m.moment
    )
    return replace(output, moments=named)


def is_sampled(output: ReleasedColumn, unit_limits: UnitLimits) -> bool:
    """Whether the interval of a column for the population follows from its own
    totals: no second moment is needed.

    Differences of two groups that share people are then wider: the products between groups were not
    paid for.
    """
    statistic = _POPULATION.get(output.formula)
    if statistic is None or output.total.kind is TotalKind.DISTINCT:
        return False
    try:
        return _is_rate(output, unit_limits) or not statistic.moments(output, unit_limits)
    except InvalidBounds:  # squares beyond floats
        return False


def _word_of(moment: UnitMoment) -> str:
    """The name of a second moment after that of its column; groups are counted from 1."""
    return (
        f"{moment.product.value}{moment.place + 1}"
        if moment.product is Product.BETWEEN
        else moment.product.value
    )


def _limits(unit_limits: UnitLimits) -> Contribution:
    """The limits on rows; with `dp.Rows(1)` one row each."""
    return Contribution(1, 1, 1) if unit_limits.one_row_each else unit_limits.contribution


def _whole_people(count: Total, unit_limits: UnitLimits) -> bool:
    """Whether each person surely has no row or one whole row in a group, so that N² = N.

    Rows have fractions where the limit in all is below what the groups allow. So do values that may
    be missing, since those that stay are the expected number of a random row.
    """
    limits = _limits(unit_limits)
    whole = count.kind is TotalKind.ROWS or not unit_limits.weighted
    return whole and limits.rows_per_group == 1 and limits.rows == limits.groups


def _of_count(output: ReleasedColumn, unit_limits: UnitLimits) -> list[Total]:
    _, count = output.totals[-1]
    if count.kind is TotalKind.UNITS or _whole_people(count, unit_limits):
        return []
    return [_row_spread(count, unit_limits)]


def _of_mean(output: ReleasedColumn, unit_limits: UnitLimits) -> list[Total]:
    """Totals for the sampling variance of a mean: none where it is a rate and a
    person has one row in a group.

    Bound:  for a rate p, a person adds N <= 1 rows to a group and S of them with the value 1, 0 <=
            S <= N; both are fractions where rows have weights or values are missing. (S - p·N)² is
            convex in S, so it is at most S·(1 - p)² + (N - S)·p², what it is at the ends S = 0 and
            S = N. Over people that is p·(1 - p)·n for the p of these rows. So p·(1 - p)·n is the
            variance if people have one row each, and more if they have many
    """
    (_, total), (_, count) = output.totals
    single = _whole_people(count, unit_limits)
    if not single and _is_compared(output, unit_limits):
        return [_centred_square([total, count], unit_limits)]
    if _is_rate(output, unit_limits):
        return []
    square, cross = (
        _with_rows(kind, total, count, unit_limits) for kind in (Product.SQUARE, Product.CROSS)
    )
    return [square] if single else [square, cross, _row_spread(count, unit_limits)]


def _is_rate(output: ReleasedColumn, unit_limits: UnitLimits) -> bool:
    """Whether a mean is that of 0 and 1, of people with at most one
    row in a group; see `_of_mean`.
    """
    grid = output.total.grid
    zero_or_one = output.total.is_exact and (grid.upper - grid.lower) * grid.step <= 1
    return (
        output.formula is Formula.MEAN and zero_or_one and _limits(unit_limits).rows_per_group == 1
    )


def _shifted(bound: int) -> int:
    """Number of bits that a factor loses, so that it is below 2^24."""
    return max(0, bound.bit_length() - _BITS)


def _moment(
    moment: UnitMoment, total: Total, grid: ValueGrid, most: int | None, unit_limits: UnitLimits
) -> Total:
    """The total of a second moment: an integer of the grid for each person and group.
    Errors: InvalidBounds.
    """
    table, ends = unit_limits.table, (grid.lower, grid.upper)
    _check_size(grid.step, ends, unit_limits)
    if unit_limits.one_row_each and not total.nullable:
        bound, moment = maps.one_row_sum(*ends), replace(moment, one_row=True)
    else:
        limits = unit_limits.contribution
        bound = maps.unit_products(limits, *ends, table.relation, unit_limits.cells, most)
        moment = replace(moment, most_groups=limits.groups, in_all=most)
    return Total(TotalKind.MOMENT, None, grid, 0, bound, moment=moment)


def _check_size(unit: Fraction, ends: tuple[int, int], unit_limits: UnitLimits) -> None:
    """Errors: InvalidBounds where squares of products of two sums are beyond floats."""
    if unit < Fraction(1, 10**150) or unit * max(-ends[0], ends[1]) > 10**140:
        raise _beyond_floats(unit_limits)


def _beyond_floats(unit_limits: UnitLimits) -> InvalidBounds:
    return InvalidBounds(
        f"{unit_limits.what}: with covers='population', squares of products must be within floats. "
        "Give bounds between 1e-60 and 1e60 in size, such as bounds=(0, 100)."
    )


def _row_spread(count: Total, unit_limits: UnitLimits) -> Total:
    """Σ N·(k - N) over people."""
    limits = _limits(unit_limits)
    largest = limits.rows_per_group << count.fraction
    shift = _shifted(largest)
    rows, in_all = largest >> shift, (limits.rows << count.fraction) >> shift
    moment = UnitMoment(Product.ROW_SPREAD, None, count.key, rows_shift=shift, most_rows=rows)
    grid = ValueGrid(Fraction(2**shift, 2**count.fraction) ** 2, Fraction(0), 0, rows**2 // 4)
    return _moment(moment, count, grid, rows * in_all, unit_limits)


def _with_rows(product: Product, total: Total, count: Total, unit_limits: UnitLimits) -> Total:
    """Σ S² - k·h²·N/2, or Σ S·(k - N), over people, of a sum
    measured from the middle of its grid.
    """
    limits, grid = _limits(unit_limits), total.grid
    largest = (grid.magnitude * limits.rows_per_group) << total.fraction
    pre = 0 if largest.bit_length() <= _SAFE else largest.bit_length() - _BITS - 20
    tilt = 0 if pre else grid.lower + grid.upper
    widest = (
        ((grid.upper - grid.lower) * limits.rows_per_group) << total.fraction
        if not pre
        else 2 * largest >> pre
    )
    shift, rows_shift = _shifted(widest), _shifted(limits.rows_per_group << count.fraction)
    most = widest >> shift
    rows = (limits.rows_per_group << count.fraction) >> rows_shift
    in_all = (limits.rows << count.fraction) >> rows_shift
    unit = Fraction(2**shift * 2**pre, 2) * total.unit
    slope, cap = 0, most
    if product is Product.SQUARE:
        slope = most**2 // (2 * rows)
        cap = -(-(most**2) // rows) - slope
    largest_product = cap * rows if product is Product.SQUARE else -(-most * rows // 4)
    rows_unit = Fraction(2**rows_shift, 2**count.fraction)
    moment = UnitMoment(
        product,
        total.key,
        count.key,
        pre,
        shift,
        tilt,
        total.fraction - count.fraction,
        rows_shift,
        most,
        rows,
        slope,
        cap,
    )
    worth = unit**2 if product is Product.SQUARE else unit * rows_unit
    values = ValueGrid(worth, Fraction(0), -largest_product, largest_product)
    return _moment(moment, total, values, cap * in_all, unit_limits)


def _of_sum(output: ReleasedColumn, unit_limits: UnitLimits) -> list[Total]:
    """Σ S² over people: by S·(most - S) where no value is negative, a
    quarter as large; else itself.
    """
    _, total = output.totals[0]
    per_unit = total.kind is TotalKind.UNIT_SUM
    groups = unit_limits.groups if not unit_limits.one_row_each else 1
    limits = Contribution(groups, 1, groups) if per_unit else _limits(unit_limits)
    largest = (total.grid.magnitude * limits.rows_per_group) << total.fraction
    pre = 0 if largest.bit_length() <= _SAFE else largest.bit_length() - _BITS - 20
    doubled = 2 * (largest >> pre)
    shift = _shifted(doubled)
    most = doubled >> shift
    positive = total.grid.lower >= 0
    # of all x, but for rounding
    sizes = (2 * total.grid.magnitude * limits.rows << total.fraction) >> (pre + shift)
    in_all = None if per_unit else most * (sizes + 2 * limits.groups)
    moment = UnitMoment(
        Product.SPREAD if positive else Product.SQUARE,
        total.key,
        None,
        pre=pre,
        shift=shift,
        most=most,
    )
    unit = (Fraction(2**shift * 2**pre, 2) * total.unit) ** 2
    ends = (0, most**2 // 4) if positive else (0, most**2)
    if not per_unit:
        return [_moment(moment, total, ValueGrid(unit, Fraction(0), *ends), in_all, unit_limits)]
    _check_size(unit, ends, unit_limits)
    return [_of_whole_people(moment, unit, ends, unit_limits)]


def _of_influence(output: ReleasedColumn, unit_limits: UnitLimits) -> list[Total]:
    """Σ ψ² over people, with ψ the influence of a person on the
    statistic: see `influence_total`.
    """
    return [influence_total([total for _, total in output.totals], unit_limits)]


def influence_total(totals: Sequence[Total], unit_limits: UnitLimits, place: int = 0) -> Total:
    """The sum over units of squared influences, each at most 1.

    An influence is how much one unit moves a released statistic, such as a ratio: a weighted sum of
    what the unit adds to each total.

    Input:  totals: those that the statistic follows from; unit_limits; place: the number of a
            coefficient, where several statistics follow from the same totals
    Output: a total in units of the squared clip; where the last total is a number of rows, that of
            `_centred_square`. The clip is chosen together with the weights: see
            `dpframe.release.estimators.influence`
    Bound:  a unit adds to a group one integer in [0, 2^32], whatever the weights are, since the
            influence is clipped after it is computed. The weights follow from noisy totals alone,
            which are drawn first. So this total is one more release that is chosen adaptively: its
            ε (or ρ, or μ²) is added to that of the others
    Source: Dwork, Rothblum, Vadhan 2010, for ε; Bun, Steinke 2016, arXiv:1605.02065, for ρ; Dong,
            Roth, Su 2022, arXiv:1905.02383, theorem 4, for Gaussian noise whose μ² add up
    Errors: InvalidBounds where squares of a total are beyond floats
    """
    if totals[-1].counts_rows:
        return _centred_square(totals, unit_limits, place)
    per_unit = all(total.of_units for total in totals)
    moment = _influence(
        totals, 1 if per_unit else _limits(unit_limits).rows_per_group, place, unit_limits
    )
    first = next((t for t in totals if t.nullable), totals[0])
    ends, unit = (0, INFLUENCE_MOST**2), Fraction(1, INFLUENCE_MOST**2)
    if not per_unit:
        return _moment(moment, first, ValueGrid(unit, Fraction(0), *ends), None, unit_limits)
    return _of_whole_people(moment, unit, ends, unit_limits)


def _influence(
    totals: Sequence[Total], rows: int, place: int, unit_limits: UnitLimits
) -> UnitMoment:
    """The influence of a unit with at most so many rows in a group, in integers.
    Errors: InvalidBounds.
    """
    for total in totals:
        largest = total.grid.magnitude * total.grid.step
        if largest and not Fraction(1, 10**120) <= largest <= 10**120:
            raise _beyond_floats(unit_limits)
    lifts = []
    for total in totals:
        each = 1 if total.of_units else rows
        lifts.append(_BITS - ((total.grid.magnitude * each) << total.fraction).bit_length())
    keys = tuple(total.key for total in totals)
    return UnitMoment(
        Product.INFLUENCE,
        None,
        None,
        most=INFLUENCE_MOST,
        most_rows=rows,
        parts=keys,
        lifts=tuple(lifts),
        place=place,
    )


# whose groups are compared
_DIFFERENT = (Formula.COUNT, Formula.SUM, Formula.MEAN, Formula.VAR, Formula.STD)


def _others(place: int, groups: int) -> int:
    """The largest number of groups before a place that a unit in so many groups,
    one of them at the place, is in.
    """
    return min(groups - 1, place)


def _most_groups(unit_limits: UnitLimits) -> int:
    """The largest number of listed groups that a unit is in."""
    cells = unit_limits.cells or 0
    return min(unit_limits.groups, cells, unit_limits.max_rows or cells)


def _is_compared(output: ReleasedColumn, unit_limits: UnitLimits) -> bool:
    """Whether products between groups are paid for: see `between_totals`."""
    if output.formula not in _DIFFERENT or not unit_limits.grouped_by or not unit_limits.table.unit:
        return False
    return 2 <= (unit_limits.cells or 0) <= MOST_COMPARED and _most_groups(unit_limits) > 1


def _centred_square(totals: Sequence[Total], unit_limits: UnitLimits, place: int = 0) -> Total:
    """The sum over units of the squared influence on a statistic, less half of
    the largest square for each row.

    So it moves by half as much as the squares alone. For a mean it replaces Σ S², Σ S·N and Σ N²
    where influences are read anyway: one total, with the mean known.

    Input:  totals: those that the statistic follows from, the number of rows last; unit_limits
    Output: a total in units of the squared clip
    Bound:  with at most k rows in a group, let n be a unit's rows there and x its influence, an
            integer in [-M, M] whatever the weights are. The unit adds x² - s·n with s = M²/2k,
            clipped last to [-s·n, s·n] (rounded up), and n is at most k in a group and K in all,
            with fractions of rows. So joining or leaving moves a group by at most s·k and all
            together by at most s·K; under replace by at most twice that. Where nothing is clipped,
            |x| <= M·n/k, so x² lies in [0, M²·n/k], and the last clip changes nothing
    Source: as `influence_total`
    Errors: InvalidBounds where squares of a total are beyond floats
    """
    *_, count = totals
    limits = _limits(unit_limits)
    influence = _influence(totals, limits.rows_per_group, place, unit_limits)
    shift = _shifted(limits.rows_per_group << count.fraction)
    rows, in_all = (
        (limits.rows_per_group << count.fraction) >> shift,
        (limits.rows << count.fraction) >> shift,
    )
    slope = INFLUENCE_MOST**2 // (2 * rows)
    cap = -(-(INFLUENCE_MOST**2) // rows) - slope
    moment = replace(
        influence, counts=count.key, rows_shift=shift, most_counted=rows, slope=slope, cap=cap
    )
    first = next((t for t in totals if t.nullable), totals[0])
    grid = ValueGrid(Fraction(1, INFLUENCE_MOST**2), Fraction(0), -cap * rows, cap * rows)
    return _moment(moment, first, grid, cap * in_all, unit_limits)


def between_totals(output: ReleasedColumn, unit_limits: UnitLimits) -> list[Total]:
    """Sums over units of the product of two influences, for each two of a few listed groups.

    Input:  output: a released column; unit_limits
    Output: for each group but the first a total that has a number for each group before it, in
            units of the product of both clips; the numbers of other groups are 0. Nothing where
            units are in at most one group, where groups are found in the data, and where more than
            five are listed
    Bound:  neighbouring tables differ in the rows of one unit. Its influences are clipped to [-M,
            M], M = 2^16, after they are computed, whatever the weights are; and each product of two
            of them to [-c, c] with c <= M². Under the limits it is in at most m groups. So in the
            total of a group it has a product with at most m - 1 of the groups before it, and no
            other unit has another product. Joining or leaving moves one number by at most c and all
            together by at most (m - 1)·c; under replace, where another unit takes its place, by 2·c
            and 2·(m - 1)·c. The weights follow from noisy totals that are drawn first, so this is
            one more release that is chosen adaptively, as for `influence_total`. With at most k
            rows in a group and K in all, influences of n and n' rows are at most M·n/k and M·n'/k
            where nothing is clipped, with n + n' <= K: so c = M²·(K/2k)² if K is below 2k, and else
            M², clips nothing that the limits allow. Why five groups: a unit in m groups has m·(m -
            1)/2 products and m squares. So the noise of a covariance beside that of a variance
            grows with m - 1. For means at ε = 1 and people with one row in each group, intervals of
            differences are narrower than without products from 100 people on in two groups, 700 in
            five and 1,000 in eight, by up to 29% for independent groups. For fewer people they are
            up to 4% wider
    Source: as `influence_total`; Cochran 1977, "Sampling Techniques", chapter 6, for differences of
            ratios
    Errors: InvalidBounds where squares of a total are beyond floats
    """
    if not _is_compared(output, unit_limits):
        return []
    cells, most_groups = unit_limits.cells or 0, _most_groups(unit_limits)
    totals = [total for _, total in output.totals]
    per_unit = all(total.of_units for total in totals)
    limits = Contribution(most_groups, 1, most_groups) if per_unit else unit_limits.contribution
    influence = _influence(totals, limits.rows_per_group, 0, unit_limits)
    rows, both = min(limits.rows, 2 * limits.rows_per_group), 2 * limits.rows_per_group
    cap = (INFLUENCE_MOST * rows) ** 2 // both**2
    result = []
    for place in range(1, cells):
        others = _others(place, most_groups)
        most, in_all = Contribution(others, 1, others), others * cap
        bound = maps.unit_products(most, -cap, cap, unit_limits.table.relation, place, in_all)
        moment = replace(
            influence,
            product=Product.BETWEEN,
            place=place,
            cap=cap,
            groups=cells,
            others=others,
            most_groups=most_groups,
            in_all=in_all,
        )
        grid = ValueGrid(Fraction(1, INFLUENCE_MOST**2), Fraction(0), -cap, cap)
        result.append(Total(TotalKind.MOMENT, None, grid, 0, bound, moment=moment))
    return result


def _of_whole_people(
    moment: UnitMoment, unit: Fraction, ends: tuple[int, int], unit_limits: UnitLimits
) -> Total:
    """The total of a second moment where each person has one number in a
    group, whatever their rows are.
    """
    groups = 1 if unit_limits.one_row_each else unit_limits.groups
    limits = Contribution(groups, 1, groups)
    bound = maps.unit_products(limits, *ends, unit_limits.table.relation, unit_limits.cells)
    moment = replace(moment, most_groups=groups)
    return Total(
        TotalKind.MOMENT, None, ValueGrid(unit, Fraction(0), *ends), 0, bound, moment=moment
    )


@dataclass(frozen=True)
class _Population:
    """A statistic with an interval for the population:
    what people call it, and the second moments that it needs.
    """

    plural: str
    moments: Callable[[ReleasedColumn, UnitLimits], list[Total]]


# the one list of statistics with covers="population"
_POPULATION: Mapping[Formula, _Population] = {
    Formula.COUNT: _Population("counts", _of_count),
    Formula.SUM: _Population("sums", _of_sum),
    Formula.MEAN: _Population("means", _of_mean),
    Formula.RATIO: _Population("ratios", _of_influence),
    Formula.VAR: _Population("variances", _of_influence),
    Formula.STD: _Population("standard deviations", _of_influence),
    Formula.COV: _Population("covariances", _of_influence),
    Formula.CORR: _Population("correlations", _of_influence),
}


def has_population(formula: Formula) -> bool:
    """Whether a statistic has intervals for the population."""
    return formula in _POPULATION
