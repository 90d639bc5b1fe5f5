"""The guesses of dp.Auto's models, in one place.

Limits and bounds are chosen, and expected errors computed, with these figures. No sensitivity,
price or privacy bound rests on them: a bad guess makes a release noisier or more biased, and never
less private.

If a benchmark decided a figure, its result stands beside it. "By hand" means that the figure was
set by comparing the model's expected errors with errors of releases on the panels of
`benchmarks/auto.py`: another figure nearby may do as well. Grids for integrals and searches stand
where they are used: a finer grid changes the time, hardly the answer.

Two kinds of figures are elsewhere, because rooms below this one need them: the shares of the price
are in `dpframe.plan.columns`, and the largest factor by which numbers are scaled is in
`dpframe.release.answer.upscaling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """The guesses: figures that are not measured in the data at hand."""

    # Errors of means, in half the width of the bounds. By hand.
    within_unit: float = 0.3  # standard deviation of the rows of one unit in one group
    between_units: float = 0.2  # standard deviation of the units of one group

    # Typical absolute value, relative to the largest one. It is 1/2 for values that are uniform
    # within bounds around 0. Its square is the assumed squared distance of a suppressed mean from
    # the middle of the bounds. With a smaller figure, limits for means of small listed groups were
    # worse on the panels.
    typical_value: float = 0.5

    # Relative variation between groups of the part of rows that limits remove. By hand. With counts
    # corrected for removed rows, errors fell by a fifth to a third on panels where few people have
    # most rows.
    unlike_groups: float = 0.5

    # Root mean square divided by mean of group sizes, for groups that no histogram measured. By
    # hand.
    uneven_groups: float = 1.3

    # By which factor a limit on rows per group must seem better, since its cost is known less well.
    # Without it, counts in found groups had 1.05 times the error on 24 panels, and 2.4 times on
    # one.
    further_limit: float = 1.1

    # Squared errors that count as equal to the least: limits with fewer rows are then taken. With
    # 1.05 in place of 1.01, means on 10 panels had up to 1.1 times the error.
    tie: float = 1.01

    # Units per scale of the noise: with fewer, rows per group are not limited. With fewer still, 5
    # of 400 releases of one panel took noise for a limit, at 4 times the error. With 20, 316 people
    # with a row in each of 24 groups had no such limit, and counts had 2.5 times the error.
    fewest_units: float = 8.0

    # Listed groups from which Gaussian noise can be clearly less than Laplace noise. For a unit
    # with a row in each of k groups, at ε = 1 and δ = 1e-6, the deviations are 4.22·sqrt(k) and
    # 1.41·k. They are equal at 9 groups, and at 13 the first is 17% less.
    gaussian_groups: int = 13

    # Quantiles. By hand.
    groups_quantile: float = 0.5  # of units' numbers of groups: at least so many groups exist
    # of the largest size over cases: in a few cases noise looks like a unit with 1e9 rows
    largest: float = 0.75
    widest: float = 0.8  # of units' numbers of groups: limits on groups are tried up to it

    # Weights by which the price of limits is split over the histograms that matter. By hand.
    part_of_rows: int = 8  # rows of a unit
    # groups of a unit, where units are counted or keys are found in the data
    part_of_groups: int = 4
    # rows of a unit in its largest group, where groups are found in the data
    part_of_peaks: int = 3
    part_of_keys: int = 5  # units in each group
    part_of_values: int = 4  # numbers of different values
    # groups and largest groups where these matter less: in listed groups, for means, in `tune`
    part_beside: int = 2

    # Sizes of units: a curve along the nodes of a histogram. A factor of three in begin, end, jump
    # or bend moves the errors that follow by a few percent. Read in this way, 35 of 62 settings of
    # 45 panels were within 1.3 of the best limit in hindsight, 24 before.
    curve_bend: float = 0.7  # typical difference, in levels, of a move from the move before
    curve_new: float = 3.0  # typical move, in levels, where a curve begins or has jumped
    curve_begin: float = 0.1  # probability that it begins, at each node
    curve_end: float = 0.07  # probability that it ends, at each node
    # probability that nobody has more than one row in a group, since keys are often years, items
    # or waves: as likely as not
    curve_once: float = 0.5
    curve_jump: float = 0.001  # probability that it jumps, at each node, in histograms of sizes
    # relative deviation of a count from its curve, beside the variation of whole units
    curve_rough: float = 0.2

    # A curve that comes again after a gap: a few units with far more rows. Without it, 158 people
    # with three quarters of the rows, behind 2,850 with three rows each, were read as nobody. The
    # figures are by hand.
    curve_again: float = 0.1  # probability that an ended curve comes again
    curve_back: float = 0.1  # probability that it does so at each node of the gap
    # Least height of the new curve, in scales of the noise. On 14 panels of few units the worst
    # error was 4.9 times the best in hindsight with 3, and 1.9 times with 6.
    back_scales: float = 6.0
    back_units: float = 10.0  # least height of the new curve, in units

    # Weight of a case whose largest unit has n rows: n to the power of minus this. In 41 panels of
    # at most 14 groups, noise looked like a few units with very many rows: the worst error was 6.3,
    # 5.3, 4.0 and 2.2 times the best in hindsight with 0, 0.25, 0.5 and 1. With 1, 158 units that
    # had most of the rows were taken for noise.
    seldom_large: float = 0.5

    # Units per scale of the noise: cases with fewer units have less weight, since an analyst with
    # so few would not ask.
    sure_units: float = 30.0  # by hand

    # Values. By hand, on 45 kinds of columns, 25 drawn and 20 real, with 6 releases each at ε = 1.
    # Errors of means were 3.3 (300 units), 1.8 (3,000) and 1.6 (30,000) times those of the best
    # bounds in hindsight, in geometric mean; in hindsight clipping above was not let cancel
    # clipping below. With 15 or 40 for `tail_scales`, and with other `parts_of_bounds`, they
    # differed by no more than repeated runs did: up to 15% at 300 units, 7% at more. The share of
    # the first histogram, of the second one, and of the count of who is inside.
    parts_of_bounds: tuple[int, int, int] = (6, 11, 3)
    # A sign has units beyond doubt in the first histogram, where the second can do better, if the
    # probability of none is below this.
    sure_first: float = math.exp(-9)
    # In the second histogram, where nothing else can be done. At ε = 0.3, bounds of 300 units were
    # the default of their type in 33%, 20% and 11% of 216 releases with 0.2, 0.3 and 0.4; those of
    # 20 units were noise in 3%, 7% and 30%.
    empty_side: float = 0.3
    # that threshold if the other sign has units: a wrong sign costs much
    sure_side: float = math.exp(-4)
    # part of the units on either side of the range that is divided into equal bins
    bulk_tail: float = 0.25
    tail_octaves: int = 6  # how often the distance doubles beyond that range
    tail_scales: float = 20.0  # units in a tail, in scales of the noise: so many tell the law
    # How much denser than the bin before it a tail may begin, and by how much likelihood a law is
    # less likely beyond that, as a logarithm. Values become rarer outward, save in heaps. Without
    # it, 12% of 3,000 years from 1940 to 2009 were clipped in half of the releases. By hand.
    tail_denser: float = 2.0
    tail_doubt: float = 5.0
    value_cases: int = 128  # that are drawn
    # Units in one bin, per scale of its noise, that are taken for real: noise alone is that large
    # with probability e^-8 / 2, about 0.0002.
    clear_bin: float = 8.0
    # By how many scales noise may make a count smaller: by more with a probability of 2.5%.
    hidden_scales: float = 3.0
    # Probability that a range is taken for one of most units that is not, and that noise hides
    # which bins are empty.
    false_alarm: float = 0.01

    # Clipping bounds.
    groups_unlisted: float = 10.0  # assumed number of groups, if none are listed. By hand
    beyond_extreme: float = 2.0  # units below a minimum, or above a maximum. By hand
    # Allowed error of the number of units below a quantile, in standard deviations: normal noise
    # exceeds it in 1.2%. By hand.
    quantile_doubt: float = 2.5
    outside_central: float = (
        0.025  # part of the units, on either side of the range that shows that a histogram is right
    )
    # part of the units, on either side, that may be outside of the candidates. By hand
    outside_tail: float = 0.005
    # That part in scales of the noise, where it is larger, and the penalty for one more scale is a
    # factor of e. With the fixed part alone, bounds of 595 wages in two groups reached from -1,000
    # to 1,000,000, and means beside the medians erred by 556 in place of 39.
    outside_scales: float = 4.0
    # penalty for a larger part outside, as a factor in the exponent. By hand
    outside_cost: float = 1e3

    # Different values, and how units share them. By hand; the law itself is in `distinct_values`.
    own_values: float = 8.0  # values per row: with so many, hardly two rows share a value
    beyond_values: float = 64.0  # values per row: with so many, each row has its own value
    values_rough: float = 0.1  # relative error of the model


MODEL = Model()
