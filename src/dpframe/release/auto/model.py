"""The guesses of dp.Auto's models, in one place.

By these figures limits and bounds are chosen, and expected errors are told. No sensitivity, price or bound of privacy
rests on one of them: a bad guess makes a release noisier or more biased, and never less private.

Where a benchmark decided, it stands beside the figure, with what it said. "By hand" means that the figure was set while
the errors that the model expects were held against those of releases on the panels of `benchmarks/auto.py`, and that no
run has singled it out: another figure nearby may do as well. What all of them together reach on those panels is in
`error_model._geometric_mean`. Grids on which integrals and searches are computed stand where they are used: a finer one
changes the time, and hardly the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["MODEL", "Model"]


@dataclass(frozen=True)
class Model:
    """Figures that nobody measured in the data at hand."""

    # Errors of means, in half the width of the bounds. By hand.
    reweighted_mean: float = 0.02  # how far a mean is off when all of its weight is on other rows
    turned_mean: float = 0.06  # how far it is off when each unit's weight is all in other groups than without limits
    within_unit: float = 0.3  # standard deviation of the rows of one unit in one group
    between_units: float = 0.2  # standard deviation of the units of one group
    noise_alone: float = 0.5  # largest square of a mean's error where it is noise alone, and nothing is suppressed

    # The size of a value beside the largest one. Half: the mean size of values that are uniform within bounds around 0.
    # Its square is how far, squared, a suppressed mean is taken to be from the middle of the bounds. With less,
    # means of small groups in listed keys were chosen worse on the panels.
    typical_value: float = 0.5

    # How far groups are unlike in the part of their rows that limits leave out, beside that part. By hand. Where counts
    # are scaled up by what is left out, errors fell by a fifth to a third on panels where few people have most rows.
    unlike_groups: float = 0.5

    # Root mean square over mean of the sizes of groups that no histogram measured. By hand.
    uneven_groups: float = 1.3

    # How many times better a limit on rows per group must seem, since less is known of what it costs. By hand.
    further_limit: float = 1.1

    # Units beside the scale of the noise: of fewer, the largest groups of units are not limited. On 61 and on 28 panels
    # counts were as exact without that limit (mean log error 0.275 and 0.275, 0.347 and 0.346); with it, 5 of 400
    # releases of one panel took noise for a limit, at 4 times the error.
    fewest_units: float = 20.0

    # Listed groups from which Gaussian noise can be clearly less than Laplace noise. For a unit with a row in each of k
    # groups, at ε = 1 and δ = 1e-6, the deviations are 4.22·sqrt(k) and 1.41·k. They are equal at 9 groups, and at 13
    # the first is 17% less.
    gaussian_groups: int = 13

    # Quantiles. By hand.
    groups_quantile: float = 0.5  # of units by their groups: there are at least so many groups
    largest: float = 0.75  # of the largest size, over cases: in few of them noise looks like a unit with 1e9 rows
    widest: float = 0.8  # of units by their groups: up to there limits on groups are tried

    # Parts of the price of limits, one beside another, for each histogram that matters. By hand.
    part_of_rows: int = 8  # rows of a unit
    part_of_groups: int = 4  # groups of a unit, where units are counted or keys are found in the data
    part_of_peaks: int = 1  # rows of a unit in its largest group, where groups are listed
    part_of_peaks_found: int = 3  # rows of a unit in its largest group, where groups are found in the data
    part_of_keys: int = 5  # units in each group
    part_of_values: int = 4  # numbers of different values
    part_beside: int = 2  # groups and largest groups where they matter less: for means, and in `tune`

    # Sizes of units: a curve along the nodes of a histogram. A factor of three in begin, end, jump or bend moves the
    # errors that follow by a few percent. Read in this way, 35 of 62 settings of 45 panels were within 1.3 of the best
    # limit in hindsight, 24 before.
    curve_bend: float = 0.7  # levels by which a move is ordinarily unlike the one before
    curve_new: float = 3.0  # levels by which a curve ordinarily moves where it begins or has jumped
    curve_begin: float = 0.1  # how likely it begins, at each node
    curve_end: float = 0.07  # how likely it ends, at each node
    curve_jump: float = 0.001  # how likely it jumps, at each node, where sizes are read
    curve_rough: float = 0.2  # how far a count is off its curve, beside what chance does to whole units

    # A curve that comes again after a gap: a few units with far more rows. Without it, 158 people with three quarters
    # of the rows, behind 2,850 with three rows each, were read as nobody. The figures are by hand.
    curve_again: float = 0.05  # how likely one that has ended comes again
    curve_back: float = 0.1  # how likely it does so at each node of the gap
    back_scales: float = 3.0  # scales of the noise that it then has at least: less is taken for noise
    back_units: float = 10.0  # and units that it has at least

    # Units beside the scale of the noise: cases with fewer count less, since who has so few asks for no histogram.
    sure_units: float = 30.0  # by hand

    # Values. Read so, errors beside the best bounds in hindsight fell on 27 kinds of columns, at ε = 1: for means from
    # 4.7 to 3.2 (1,000 units) and 5.6 to 1.6 (50,000), for standard deviations from 6.9 to 4.1 and 5.5 to 1.8. Each
    # figure is by hand, save those with a probability beside them.
    values_jump: float = 0.01  # how likely a curve of values jumps: they are in several heaps more often than sizes
    empty_side: float = 0.2  # how likely it may be that nobody is on a side before the side is left out
    # That likelihood where somebody is on the other side: a wrong side costs everything.
    sure_side: float = math.exp(-9)
    power_seen: float = 0.25  # how likely somebody must be in a power of two for bins to be made of it
    units_in_bin: float = 4.0  # units in a bin, beside the scale of its noise
    bins_tail: float = 0.03  # of a side's units, in powers of two that do not count when bins are made so large
    clear_bin: float = 8.0  # units in one bin, beside its scale, that are taken to be there: noise alone is so large
    # with probability e^-8 / 2, about 0.0002
    false_alarm: float = 0.01  # how often a histogram of nobody may be taken for one of somebody

    # Clipping bounds.
    groups_unlisted: float = 10.0  # groups there are taken to be where nobody listed them. By hand
    beyond_extreme: float = 2.0  # units below a minimum, or above a maximum. By hand
    # Standard deviations of noise that the units below a quantile may be off: of normal noise 1.2% is more. By hand.
    quantile_doubt: float = 2.5
    outside_tail: float = 0.005  # of the units, on either side, that may be outside of the candidates. By hand
    outside_cost: float = 1e3  # how much more of them costs, as a factor in the exponent. By hand

    # Different values, and how units share them. By hand; the law itself is in `distinct_values`.
    own_values: float = 8.0  # values for each row: with so many hardly two rows share one
    beyond_values: float = 64.0  # values for each row that are as many as one likes: each row has its own
    values_rough: float = 0.1  # how far the model is off, beside what it says


MODEL = Model()
