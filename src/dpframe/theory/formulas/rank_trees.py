"""Trees of counts over the ordered places of a column:
their shape, their noise, and the ranks that follow from them.

A tree divides the places (candidates of a quantile) into blocks, these into smaller blocks, and so
on down to single places. The number of rows in each block is measured with noise. Numbers of rows
up to each place follow by least squares, and so do quantiles of all ranks and the distribution
function, with their errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpframe.arrays import Array, Integers
from dpframe.noise import float_up, root_up
from dpframe.theory.formulas.error import normal_error, unimodal_error
from dpframe.theory.formulas.loss import PRIOR, rank_terms
from dpframe.theory.formulas.trees import Levels, moved_parts

_MOST_CHILDREN = 64

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RankTree:
    """The levels of a tree over ordered places, and the part of the price for each level.

    Input:  degrees: how many children a node has, from the root down; parts: the part of the price
            for the root, for its children, …, for the leaves. They add up to 1, and a level with
            part 0 is not measured. normal: whether the noise is Gaussian, so that parts are of ρ or
            μ²; else it is Laplace, and parts are of ε
    Output: `leaves` is the product of the degrees. Where the column has fewer places, the last
            leaves are empty
    Bound:  one level is a histogram. It divides a group's rows, so one unit moves it by at most the
            l1 and l2 of `plan.choice_totals.tree_total`. Level i gets a part p_i of the price.
            Laplace noise of scale b/p_i has the ε of l1·p_i/b, and the levels add up to l1/b: that
            of noise of scale b on one level. Gaussian noise of σ/√p_i has the μ² of l2²·p_i/σ², and
            the levels add up to l2²/σ². So a tree costs as much as one number of that sensitivity,
            in ε and in ρ: the ρ of Laplace noise is a convex function of its ε that is 0 at 0, so
            the parts cost no more than the whole
    Source: Hay, Rastogi, Miklau, Suciu 2010, arXiv:0904.0942; Dwork and Roth 2014, theorem 3.16,
            for adding up

    >>> tree = RankTree((2, 2), (Fraction(0), Fraction(1, 2), Fraction(1, 2)), normal=False)
    >>> [level.tolist() for level in tree.levels(np.array([[1, 2, 4]]))]
    [[[7]], [[3, 4]], [[1, 2, 4, 0]]]
    >>> tree.scale_of(1, 10.0)
    20.0
    """

    degrees: tuple[int, ...]
    parts: tuple[Fraction, ...]
    normal: bool

    @property
    def leaves(self) -> int:
        """Number of leaves of the tree."""
        return math.prod(self.degrees)

    def scale_of(self, level: int, scale: float) -> float:
        """The scale of the noise of a level, rounded up;
        `scale` is that of all of the price on one number.
        """
        part = self.parts[level]
        return (
            root_up(Fraction(scale) ** 2 / part)
            if self.normal
            else float_up(Fraction(scale) / part)
        )

    def levels(self, counts: Array) -> list[Array]:
        """The exact number of rows of each node, level by level from the root: groups by nodes."""
        padded = np.zeros((len(counts), self.leaves), counts.dtype)
        padded[:, : counts.shape[1]] = counts
        levels = [padded]
        for degree in reversed(self.degrees):
            below = levels[-1]
            levels.append(below.reshape(len(counts), below.shape[1] // degree, degree).sum(axis=2))
        return levels[::-1]

    @cached_property
    def relative(self) -> tuple[float, ...]:
        """For each level the variance of its noise, relative to that of
        all of the price on one number.
        """
        return tuple(
            math.inf if part == 0 else float(1 / part if self.normal else 1 / part**2)
            for part in self.parts
        )

    @cached_property
    def error(self) -> float:
        """Expected error of a rank, in standard deviations of noise with
        all of the price on one number.

        Input:  the tree
        Output: the root of the mean square, over quantiles of all ranks at all places of the range
        Bound:  let u_j be the variance of a level-j node's estimate from its own subtree, b_j its
                number of children, and s the part of its leaves that is below the quantile. Given
                the node's total, the children are estimated with variances u_(j+1) and covariances
                that keep the total. With k whole children below the quantile and a part f of one
                more, the number of rows below it has the additional variance u_(j+1)·(k + f² -
                b_j·s²), where s = (k + f)/b_j. At a place chosen uniformly k is uniform on 0, …,
                b_j - 1, f is uniform on [0, 1] and so is s, so its mean is u_(j+1)·(b_j - 1)/6. The
                rank q of the quantile counts too: its error is (rows below) - q·(all rows), so the
                root adds u_0·(s - q)², in the mean u_0/6 for a uniform q. The terms of different
                levels are independent
        Source: `theory.formulas.trees.Levels.sum_variances`, here for equal degrees; the mean is
                ours
        """
        own = _own(self.degrees, self.relative)
        return math.sqrt(_mean_square(self.degrees, own))

    def relative_squares(self, rank: float) -> Floats:
        """Relative variance of (rows below) - rank·(all rows), for
        each of the leaves + 1 borders.
        """
        return self.squares_within + (self._share_below - rank) ** 2 * self.root_square

    @property
    def root_square(self) -> float:
        """Relative variance of the estimate of a group's rows."""
        return _own(self.degrees, self.relative)[0]

    @cached_property
    def _share_below(self) -> Floats:
        """The part of the leaves that is below each border."""
        return np.arange(self.leaves + 1) / self.leaves

    @cached_property
    def squares_within(self) -> Floats:
        """Relative variance of the rows below each border, given the
        total of all rows; see `error`.
        """
        own, result = _own(self.degrees, self.relative), np.zeros(self.leaves + 1)
        borders, size = np.arange(self.leaves), self.leaves
        for level, degree in enumerate(self.degrees):
            size, inside = size // degree, borders % size
            whole, part = inside // size, inside % size / size
            below = (whole + part) / degree
            result[:-1] += own[level + 1] * np.maximum(whole + part**2 - degree * below**2, 0.0)
        return result

    def fitted(self, noisy: list[Any], unit: float, square: float, places: int) -> FittedRanks:
        """The least-squares fit of all noisy nodes.

        Input:  noisy: for each level the noisy numbers, groups by nodes (an unmeasured level is
                ignored); unit: rows in one unit of these numbers; square: variance of the noise
                with all of the price on one number (units²); places: how many of the leaves are
                places of the column
        Output: numbers of rows below the borders
        Bound:  post-processing; see `theory.formulas.trees.Levels.estimates`
        """
        first = tuple(
            np.arange(math.prod(self.degrees[:i])) * degree for i, degree in enumerate(self.degrees)
        )
        tree = Levels(first, self.leaves)
        estimate = tree.estimates(
            [np.asarray(level, np.float64).T for level in noisy], self.relative
        )[-1].T
        below = (
            np.concatenate([np.zeros((len(estimate), 1)), np.cumsum(estimate, axis=1)], axis=1)
            * unit
        )
        return FittedRanks(self, below, math.sqrt(square) * unit, places)


@dataclass(frozen=True)
class FittedRanks:
    """Estimated numbers of rows below the borders between places, for
    each group; see `RankTree.fitted`.

    `deviation` is the standard deviation of noise with all of the price on one number (rows).
    Border i is below place i, so that the first `places` + 1 borders are those of the column's
    places.
    """

    tree: RankTree
    below: Floats
    deviation: float
    places: int

    @cached_property
    def monotone(self) -> Floats:
        """Numbers of rows below the borders that never fall, from 0 to all rows.

        Bound:  the middle of the largest estimate so far and the smallest one from here on. If all
                estimates are within t of the exact numbers, so are these, since the exact numbers
                do not fall either
        """
        rising = np.maximum.accumulate(self.below, axis=1)
        falling = np.minimum.accumulate(self.below[:, ::-1], axis=1)[:, ::-1]
        return np.clip((rising + falling) / 2, 0.0, np.maximum(self.below[:, -1:], 0.0))

    def quantiles(self, rank: float) -> Floats:
        """Place of the quantile among the borders: 2.5 is half way through place 2.
        It grows with the rank.

        Where noise hides all rows of a group, it is a part `rank` of the way.
        """
        target, places = rank * self.monotone[:, -1], np.full(len(self.below), rank * self.places)
        for group in np.flatnonzero(self.monotone[:, -1] > 0):
            numbers = self.monotone[group, : self.places + 1]
            first = int(
                np.clip(np.searchsorted(numbers, target[group], side="left"), 1, self.places)
            )
            before, until = numbers[first - 1], numbers[first]
            part = (target[group] - before) / (until - before) if until > before else 0.5
            places[group] = first - 1 + min(max(part, 0.0), 1.0)
        return places

    def _times(self, alpha: float) -> float:
        """Number of standard deviations that an estimate is off with probability at most alpha."""
        return normal_error(1.0, alpha) if self.tree.normal else unimodal_error(1.0, alpha)

    def reach(self, rank: float, alpha: float) -> tuple[Integers, Integers]:
        """The first and the last place where each group's quantile may be, at confidence 1 - alpha.

        Bound:  the quantile is at a place p where the rows below it are at most rank·(all rows),
                and those up to it at least that. p depends on the rows alone. At the lower border
                of p, (rows below) - rank·(all rows) is at most 0, and at its upper border at least
                0. Each of the two is estimated with normal noise, or with a sum of Laplace noises,
                of a known variance: it is off to one side by the tabled distance with probability
                at most alpha/2, since these laws are symmetric. So with probability 1 - alpha, the
                lower border of p is among the borders whose estimate is at most its distance, and
                the upper border among those whose estimate is at least minus it. The interval is
                from the first of the latter to the last of the former
        Source: test inversion (Neyman 1937); `normal_error`, `unimodal_error`
        """
        gaps = (self.below - rank * self.below[:, -1:])[:, : self.places + 1]
        far = (
            self._times(alpha)
            * self.deviation
            * np.sqrt(self.tree.relative_squares(rank))[: self.places + 1]
        )
        upper_fits, lower_fits = gaps[:, 1:] >= -far[1:], gaps[:, :-1] <= far[:-1]
        first = np.where(upper_fits.any(axis=1), upper_fits.argmax(axis=1), self.places - 1)
        last = np.where(
            lower_fits.any(axis=1), self.places - 1 - lower_fits[:, ::-1].argmax(axis=1), 0
        )
        return np.minimum(first, last), np.maximum(first, last)

    def shares(self, place: float, even: float) -> Floats:
        """The part of each group's rows below a place among the borders, from 0 to
        1; rows are spread in a place.

        Where noise hides all rows of a group, it is `even`.
        """
        border = min(max(place, 0.0), float(self.places))
        low = min(int(border), self.places - 1)
        rows = self.monotone[:, low] + (border - low) * (
            self.monotone[:, low + 1] - self.monotone[:, low]
        )
        whole = self.monotone[:, -1]
        return np.asarray(np.where(whole > 0, rows / np.where(whole > 0, whole, 1.0), even))

    def share_reach(self, before: int, until: int, alpha: float) -> tuple[Floats, Floats]:
        """The ends of the interval of `shares` at confidence 1 - alpha.

        Input:  borders; before: below it are only rows that count; until: below it are all rows
                that count
        Bound:  the exact share is between the shares p at the two borders. A share p fits a border
                if (rows below) - p·(all rows) is within the distance of `reach`, which is a
                quadratic inequality in p; each border may miss to its outer side with probability
                alpha/2
        Source: Fieller 1954, doi:10.1111/j.2517-6161.1954.tb00159.x
        """
        low, _ = self._share_ends(before, alpha)
        _, high = self._share_ends(until, alpha)
        return low, high

    def _share_ends(self, border: int, alpha: float) -> tuple[Floats, Floats]:
        """The smallest and the largest share that fit a border."""
        if border in (0, self.places):
            share = np.full(len(self.below), float(border > 0))
            return share, share
        square = (self._times(alpha) * self.deviation) ** 2
        root, within = (
            self.tree.root_square * square,
            float(self.tree.squares_within[border]) * square,
        )
        part, rows, whole = border / self.tree.leaves, self.below[:, border], self.below[:, -1]
        a, b, c = whole**2 - root, whole * rows - root * part, rows**2 - within - root * part**2
        inside = np.maximum(b**2 - a * c, 0.0)
        bounded = (a > 0) & (whole > 0)
        divisor = np.where(bounded, a, 1.0)
        ends = ((b - np.sqrt(inside)) / divisor, (b + np.sqrt(inside)) / divisor)
        low, high = (
            np.clip(np.where(bounded, end, side), 0.0, 1.0)
            for end, side in zip(ends, (0.0, 1.0), strict=True)
        )
        return low, high


def _own(degrees: tuple[int, ...], variances: tuple[float, ...] | list[float]) -> list[float]:
    """For each level, the variance of a node's estimate from its own subtree."""
    own = [variances[-1]]
    for degree, variance in zip(reversed(degrees), reversed(variances[:-1]), strict=True):
        under = degree * own[-1]
        own.append(under if math.isinf(variance) else under * variance / (under + variance))
    return own[::-1]


def _mean_square(degrees: tuple[int, ...], own: list[float]) -> float:
    """The mean over ranks and places of the variance of a rank; see `RankTree.error`."""
    return (own[0] + sum(u * (b - 1) for u, b in zip(own[1:], degrees, strict=True))) / 6


@lru_cache(maxsize=256)
def rank_tree(places: int, *, normal: bool) -> RankTree:
    """The tree over a number of places with the smallest expected error.

    Input:  places: at least 1; normal: whether the noise is Gaussian
    Output: the best of the trees whose nodes have b children each but for the root, for b from 2 to
            64, and of the trees whose degrees are powers of two that differ by a factor of at most
            2. Parts of the price are moved between levels, 1/60 at a time, as long as that makes
            the error smaller
    Bound:  `RankTree.error`. It depends on the number of places and the kind of noise alone, so no
            data is needed

    >>> tree = rank_tree(1024, normal=False)
    >>> tree.degrees, tree.leaves, round(tree.error, 1)
    ((8, 8, 16), 1024, 7.1)
    """
    return min(
        (_with_parts(degrees, normal) for degrees in _shapes(places)), key=lambda tree: tree.error
    )


def _shapes(places: int) -> list[tuple[int, ...]]:
    """The degrees of the trees to try, from the root down."""
    if places == 1:
        return [(1,)]
    shapes: set[tuple[int, ...]] = {(places,)} if places <= _MOST_CHILDREN else set()
    for children in range(2, min(_MOST_CHILDREN, places) + 1):
        below = 1
        while children ** (below + 1) < places:
            below += 1
        top = -(-places // children**below)
        shapes |= {(top, *[children] * below)} if top > 1 else {(children,) * below}
    bits = (places - 1).bit_length()
    for levels in range(1, bits + 1):
        small, rest = divmod(bits, levels)
        even = (2**small,) * (levels - rest)
        larger = (2 ** (small + 1),) * rest
        shapes |= {even + larger, larger + even}
    return sorted(shape for shape in shapes if max(shape) <= _MOST_CHILDREN)


def _with_parts(degrees: tuple[int, ...], normal: bool) -> RankTree:
    """A tree of these degrees with the best parts of the price."""

    def error(parts: Sequence[int]) -> float:
        whole = sum(parts)
        relative = [math.inf if not n else whole / n if normal else (whole / n) ** 2 for n in parts]
        return _mean_square(degrees, _own(degrees, relative))

    parts = moved_parts(len(degrees) + 1, error)
    return RankTree(degrees, tuple(Fraction(n, sum(parts)) for n in parts), normal)


def tree_is_better(ranks: tuple[Fraction, ...], places: int) -> bool:
    """Whether one tree has a smaller expected error than one choice for
    each rank, for the price of both.

    Input:  ranks between 0 and 1 (not these two), each a part of one question; places: number of
            candidates
    Output: whether the tree of Laplace noise has the smaller mean error
    Bound:  with ε and l1 = 1, the choice of each of r ranks q = a/b is permute-and-flip of scale
            2·max(a, b - a)/b·r rows (`rank_scale`). It is off by about one scale, and public rows
            move it by PRIOR·|q - s| scales at a part s of the range, in the mean PRIOR/3
            (`rank_prior`). The error of the tree is a sum of many noises, nearly normal: in the
            mean √(2/π) times `RankTree.error` times the deviation √2 of Laplace noise. Both errors
            are in inverse proportion to ε, and both grow with l1, so that price and limits do not
            matter. Under ρ the choices grow with √r and the tree needs less noise; the choice of ε
            is taken there too
    Source: ours

    >>> (
    ...     tree_is_better((Fraction(1, 2),), 1024),
    ...     tree_is_better((Fraction(1, 4), Fraction(3, 4)), 1024),
    ... )
    (False, True)
    """
    if len(ranks) < 2:
        return False
    scales = [2 * rank_terms(rank)[0] / rank_terms(rank)[1] * len(ranks) for rank in ranks]
    choices = sum(scales) / len(scales) * (1 + PRIOR / 3)
    return rank_tree(places, normal=False).error * math.sqrt(2) * math.sqrt(2 / math.pi) < choices
