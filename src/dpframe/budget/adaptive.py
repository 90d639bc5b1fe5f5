"""The account of a budget in (ε, δ): releases at any price, chosen one after another, and what they cost together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt

from dpframe.budget.losses import Loss, Terms, kept
from dpframe.theory.formulas.loss import (
    gdp_in_proportion,
    gdp_to_epsilon,
    gdp_to_pure,
    gdp_within,
    pure_to_gdp,
    zcdp_to_epsilon,
)

SPLITS = tuple(Fraction(part, 4) for part in (1, 2, 3, 4))
_CURVES = Fraction(1, 4)  # of the δ that is not kept for the sum of μ²: for Gaussian noise in the sum of ε
_SPARED = Fraction(1, 8)  # of the δ that is left, for a price in ρ of which no μ is known
MANY = 10**9  # more releases than there will be


@dataclass(frozen=True)
class Normal:
    """What is known of a release besides its price: its μ², and whether its δ is for keys found in the data.

    Without `keys`, the release is μ-Gaussian private without any δ. With them it is so except with probability δ.
    """

    mu_squared: Fraction
    keys: bool = False


class GaussianDp:
    """Two sums side by side: of ε, and of the μ² of Gaussian differential privacy. Releases go on while one holds.

    Input:  a limit (ε, δ) with δ > 0; the price of each release, in ε, (ε, δ) or ρ, and its μ² where that is known
    Bound:  all releases together are (ε, δ)-private, if each release and its price depend in any way on the answers
            before it. Let s be the `split`, a number fixed by the first release, and m the largest μ² that implies
            (ε, (1 - s)·δ). A release has an ε_i, a μ_i² and a δ_i = δ'_i + δ''_i, such that its answers on two
            neighbours are X >= (1 - δ'_i)·X0 and Y >= (1 - δ'_i)·Y0, where the pair X0, Y0 is μ_i-Gaussian private, and
            (ε_i, δ''_i)-private. Releases go on while Σδ_i <= s·δ and (Σε_i <= ε or Σμ_i² <= m).

            Proof. Take the mixture X = (1 - δ'_i)·X0 + δ'_i·X1 as a coin that is thrown at each release, and let a
            transcript be lost from the first coin on that falls on X1. All sums are functions of the transcript, and
            they only grow. So each transcript, up to its end, belongs to A, whose Σε_i <= ε, or to B, whose
            Σμ_i² <= m. (i) On A, at each release cut X0 down to min(X0, e^(ε_i)·Y0), which loses a mass of at most
            δ''_i. What is neither lost nor cut has, as a product of the steps, at most e^(Σε_i) <= e^ε times the mass
            that it has under the other table. (ii) On B, change the interaction so that it ends before Σμ_i² would
            exceed m. That is the filter of Gaussian privacy, and what it releases is √m-Gaussian private. Transcripts
            in B have the same probability as before, since on their way the filter never ends. For any function with
            values in [0, 1], such as the probability that nothing was lost in a transcript of E and B, the expectation
            is at most e^ε times that under the other table, plus (1 - s)·δ. (iii) A mass is lost by δ'_i at any release
            or cut by δ''_i at a release before A ends. The sum of these along each transcript is at most s·δ, so the
            probability is too. Together P(E) <= e^ε·Q(E) + (1 - s)·δ + s·δ. The roles of P and Q may be exchanged

            Where the δ'' of a release does not fit, its ε_i is more than ε by itself. So the sum of ε does not hold
            from then on, whatever the largest sums of other parts of a partition are, and (i) needs no δ''.

            Pure releases alone have δ_i = 0, so the sum of ε stands beside that of μ² for nothing. Two sums that each
            need a δ, such as those of μ² and of ρ, would need both: P(E) <= e^ε·Q(E) + δ_1 + δ_2. A part of δ that is
            moved from one use to another after answers were seen has no proof either. The first release may choose
            the split, as nothing was seen before it
    Input of a release, in the sum of ε: its ε if it is pure; (ε_i, δ_i) as priced if nothing else is known of it, or
            if keys are found; and with a μ the ε_i at which its δ''_i is a quarter of s·δ·ε_i/ε. These add up to
            a quarter of s·δ at most while Σε_i <= ε. In the sum of μ²: its own μ²; that of `pure_to_gdp` if it is pure.
            A mechanism of which (ε_i, δ_i) alone is known is ε_i-private but with probability δ_i
            (Kairouz, Oh, Viswanath). A ρ of which no μ is known stands for an (ε_i, δ_i) that it implies
            A series or an allowance is one interactive mechanism of (ε_i, δ_i), beside which others run. What it
            answers can be made, question by question, of one answer of randomized response of (ε_i, δ_i)
            (Lyu, arXiv:2207.09397), so it counts as that one answer
    Split:  of 1, 1/4, 1/2 and 3/4, the first under which most releases like the first one are accepted. With 1 there is
            no δ for the sum of μ², and all of it is basic composition: so it is where squares would not help the first
    Worse than basic: the sums of ε and δ of prices accept what this does not, if the first release chose a split below
            1 and later ones, in which the sum of μ² does not hold, want more than s·δ: such as keys that are found in
            the data at more than a quarter of δ after other releases, or Laplace noise of nearly all of ε beside
            Gaussian noise. With accountant="basic" prices add up alone
    Source: Smith, Thakurta 2022, arXiv:2210.17520, and Koskela, Tobaben, Honkela 2022, arXiv:2209.15596, for the filter
            of μ²; Rogers et al. 2016, arXiv:1605.08294, for that of (ε, δ); Bun, Steinke 2016, arXiv:1605.02065,
            definition 8.1, for privacy but with probability δ. No such filter is known for other trade-off functions:
            arXiv:2602.06756. The union of the two sums is ours

    >>> limit = Loss.limit(Fraction(1), Fraction(1, 10**6))
    >>> account, spent = GaussianDp(), Loss.none()
    >>> for _ in range(100):
    ...     price = Loss.charged(Fraction(1, 10), Fraction(1, 10**7))
    ...     spent = account.total([spent, account.charged(spent, price, limit, Normal(Fraction(1, 2500)))])
    >>> account.allows(spent, limit), account.shown(spent, limit).epsilon < 0.9
    (True, True)
    """

    name = "gdp"
    terms = Terms.EITHER
    refuses_single = ""

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Sums of ε, δ and μ², and of prices, with the split of the first release."""
        return sum(losses, replace(Loss.none(), mu_squared=Fraction(0), simple=Loss.none()))

    def charged(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None = None) -> Loss:
        """What a release of this price adds to the sums. Input: the sums so far; the limit; what is known besides."""
        if not (price.exact_epsilon or price.exact_delta or price.exact_rho):
            return replace(price, exact_rho=None)
        if spent.split is not None:
            counted = self._under(spent.split, spent, price, limit, normal)
        else:
            offers = {split: self._under(split, spent, price, limit, normal) for split in SPLITS}
            split = max(SPLITS, key=lambda part: (self._more(spent, offers[part], part, limit), part == 1, -part))
            counted = replace(offers[split], split=split)
        epsilon = price.exact_epsilon if price.exact_rho is None else counted.exact_epsilon
        return replace(counted, simple=Loss.charged(epsilon, price.exact_delta))

    def _under(self, split: Fraction, spent: Loss, price: Loss, limit: Loss, normal: Normal | None) -> Loss:
        """As `charged`, under a split."""
        free = split * limit.exact_delta - spent.exact_delta
        epsilon, delta = price.exact_epsilon, price.exact_delta
        if price.exact_rho is not None and normal is None:
            slack = _SPARED * max(free - delta, Fraction(1, 10**30))
            epsilon, delta = Fraction(zcdp_to_epsilon(price.exact_rho, slack)), delta + slack
        if normal is None:
            return _counted(epsilon, delta, pure_to_gdp(epsilon))
        mu_squared = normal.mu_squared
        if price.exact_rho is None and not delta:
            return _counted(epsilon, delta, min(mu_squared, pure_to_gdp(epsilon)))
        rate = _CURVES * split * limit.exact_delta / limit.exact_epsilon
        if price.exact_rho is None and (normal.keys or split == 1 or delta <= rate * epsilon):
            return _counted(epsilon, delta, mu_squared)
        keys = delta if normal.keys else Fraction(0)
        epsilon = gdp_in_proportion(mu_squared, rate)
        room = limit.exact_epsilon - spent.exact_epsilon
        if epsilon <= room and keys + rate * epsilon <= free:
            return _counted(epsilon, keys + rate * epsilon, mu_squared)
        return _counted(epsilon + limit.exact_epsilon, keys, mu_squared)  # the sum of ε is given up, for each part too

    def allows(self, total: Loss, limit: Loss) -> bool:
        """Whether sums are within the limit."""
        split = SPLITS[-1] if total.split is None else total.split
        if total.exact_delta > split * limit.exact_delta:
            return False
        return total.exact_epsilon <= limit.exact_epsilon or _squares(total) <= most_squares(split, limit)

    def more(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None) -> int:
        """How many more releases of this price are accepted, if no others come between them."""
        item = self.charged(spent, price, limit, normal)
        split = spent.split or item.split
        return 0 if split is None else self._more(spent, item, split, limit)

    def _more(self, spent: Loss, item: Loss, split: Fraction, limit: Loss) -> int:
        """As `more`, from what each of them adds; at least 1 if the first one is accepted."""
        if not self.allows(replace(spent + item, split=split), limit):
            return 0
        free = split * limit.exact_delta - spent.exact_delta
        room = limit.exact_epsilon - spent.exact_epsilon
        curve = _CURVES * split * limit.exact_delta / limit.exact_epsilon * item.exact_epsilon
        by_epsilon = min(_times(room, item.exact_epsilon), _times(free, item.exact_delta))
        keys = max(item.exact_delta - curve, Fraction(0))
        by_square = min(_times(most_squares(split, limit) - _squares(spent), _squares(item)), _times(free, keys))
        return max(1, by_epsilon, by_square)

    def shown(self, total: Loss, limit: Loss) -> Loss:
        """The (ε, δ) of the sum that says less. It is a figure for people: what is promised is the limit."""
        if total.split is None or total.exact_epsilon == 0:
            return Loss.none()
        simple = Loss(total.exact_epsilon, total.exact_delta)
        kept_back = (1 - total.split) * limit.exact_delta
        if not kept_back or _squares(total) > most_squares(total.split, limit):
            return simple
        epsilon = gdp_to_epsilon(_squares(total), kept_back)
        squares = Loss(kept(min(epsilon, limit.exact_epsilon), ceil), total.exact_delta + kept_back)
        return squares if epsilon < total.exact_epsilon else simple

    def left(self, total: Loss, limit: Loss) -> Loss:
        """The largest ε of one pure release that is accepted, and the δ that is left for keys."""
        if total.split is None:
            return limit
        by_square = gdp_to_pure(max(most_squares(total.split, limit) - _squares(total), Fraction(0)))
        epsilon = max(limit.exact_epsilon - total.exact_epsilon, by_square, Fraction(0))
        return Loss.limit(epsilon, total.split * limit.exact_delta - total.exact_delta)

    def part(self, total: Loss, share: Fraction, limit: Loss) -> Loss:
        """The price of a share of the limit, in ε or in ρ = μ²/2, with a δ.

        Bound:  each sum has a used part: Σε_i/ε and Σμ_i²/m. The price is that share of the sum whose used part is
                smaller; at equal parts, of the one that buys less noise on a count. So the smaller used part is at most
                the sum of all shares, and shares that add up to 1 are all accepted. In ε the δ is a quarter of the
                share of s·δ, so that Gaussian noise of that price counts as its ε; in ρ it is for keys, the rest
        """
        if total.split is None and share == 1:
            return limit
        split = total.split or SPLITS[0]
        most, slack = most_squares(split, limit), share * split * limit.exact_delta
        epsilon, (used, used_square) = share * limit.exact_epsilon, _used(total, limit)
        by_square = _quieter(share * most, epsilon) if used == used_square else used_square < used
        return _priced(by_square, epsilon, share * most, slack, split)

    def each(self, total: Loss, number: int, limit: Loss) -> Loss:
        """The price of each of so many equal releases: of what is left of the sum that buys less noise on a count."""
        if total.split is None and number == 1:
            return limit
        split, each = total.split or SPLITS[0], Fraction(1, number)
        epsilon = max(limit.exact_epsilon - total.exact_epsilon, Fraction(0)) * each
        square = max(most_squares(split, limit) - _squares(total), Fraction(0)) * each
        slack = (split * limit.exact_delta - total.exact_delta) * each
        return _priced(_quieter(square, epsilon), epsilon, square, slack, split)

    def size(self, counted: Loss, total: Loss, limit: Loss) -> Fraction:
        """Its part of the sum whose used part is smaller, as a part of ε."""
        used, used_square = _used(total, limit)
        part = _used(replace(counted, split=total.split), limit)[used_square < used]
        return part * limit.exact_epsilon


def _used(total: Loss, limit: Loss) -> tuple[Fraction, Fraction]:
    """The used parts of the sum of ε and of that of μ²."""
    most = most_squares(total.split or SPLITS[0], limit)
    return total.exact_epsilon / limit.exact_epsilon, _squares(total) / most if most else Fraction(2)


def _quieter(mu_squared: Fraction, epsilon: Fraction) -> bool:
    """Whether Gaussian noise of this μ² has a smaller deviation than Laplace noise of this ε."""
    return sqrt(mu_squared) > float(epsilon) / sqrt(2)


def _priced(by_square: bool, epsilon: Fraction, mu_squared: Fraction, slack: Fraction, split: Fraction) -> Loss:
    """A price in ρ = μ²/2 or in ε, with a part of the δ that keys and Gaussian noise share."""
    if by_square:
        return Loss.limit_rho(mu_squared / 2, (1 - _CURVES) * slack)
    return Loss.limit(epsilon, slack if split == 1 else _CURVES * slack)


def most_squares(split: Fraction, limit: Loss) -> Fraction:
    """The limit m on the sum of μ²."""
    return gdp_within(limit.exact_epsilon, (1 - split) * limit.exact_delta)


def _counted(epsilon: Fraction, delta: Fraction, mu_squared: Fraction) -> Loss:
    """The numbers that are added up, rounded up."""
    return replace(Loss.charged(epsilon, delta), mu_squared=kept(mu_squared, ceil))


def _squares(total: Loss) -> Fraction:
    return total.mu_squared or Fraction(0)


def _times(free: Fraction, one: Fraction) -> int:
    """How many times one thing fits into what is free."""
    if free < 0:
        return 0
    return int(min(free // one, MANY)) if one else MANY
