"""The account of a budget in (ε, δ): releases at any price, chosen one after
another, and what they cost together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, sqrt

from dpframe.budget.losses import Loss, Terms, kept
from dpframe.theory.formulas.loss import (
    TwoSums,
    gdp_to_epsilon,
    gdp_to_pure,
    pure_to_gdp,
    zcdp_to_epsilon,
)

SPLITS = tuple(Fraction(part, 4) for part in (1, 2, 3))
_SPARED = Fraction(1, 8)  # of the δ that is left, for a price in ρ
_LEAST = Fraction(1, 10**30)  # of a δ
MANY = 10**9  # more releases than there will be


@dataclass(frozen=True)
class Normal:
    """Facts of a release besides its price: its μ², and whether its δ
    is for keys found in the data.

    Without `keys`, the release is μ-Gaussian private without any δ. With them it is so except with
    probability δ.
    """

    mu_squared: Fraction
    keys: bool = False


class GaussianDp:
    """Prices add up, until squares would help; from then on there are the two sums of `TwoSums`.

    Input:  a limit (ε, δ) with δ > 0; the price of each release, in ε, (ε, δ) or ρ, and its μ²
            where that is known
    Bound:  all releases together are (ε, δ)-private, if each release and its price depend in any
            way on the answers before it: see `dpframe.theory.formulas.loss.TwoSums`, which has the
            proof, and also why no account accepts all that adds up and anything more
    Input of a release: while prices add up, its price; a ρ stands for an (ε_i, δ_i) that it
    implies. In the sum of ε:
            its ε if it is pure; (ε_i, δ_i) as priced if nothing else is known of it, or if keys are
            found; and with a μ the ε_i at which its δ''_i is `TwoSums.rate`·ε_i. In the sum of μ²:
            its own μ²; that of `pure_to_gdp` if it is pure. A mechanism of which (ε_i, δ_i) alone
            is known is ε_i-private but with probability δ_i (Kairouz, Oh, Viswanath) A series or an
            allowance is one interactive mechanism of (ε_i, δ_i), beside which others run. What it
            answers can be made, question by question, of one answer of randomized response of (ε_i,
            δ_i) (Lyu, arXiv:2207.09397), so it counts as that one answer
    Begins: at the first release of which, if it were repeated, more would be accepted by two sums
            than by adding up. The split is the one of 1/4, 1/2 and 3/4 under which most would be.
            So releases of ε = 0.05 of 1 add up and decide nothing, and hundreds at ε = 0.001,
            Gaussian noise with a δ, and small shares begin the two sums
    Worse than basic: after the sums have begun, keys that are found in the data at more than s·δ,
    and the last part of
            ε beside Gaussian noise. With accountant="basic" prices add up alone

    >>> limit = Loss.limit(Fraction(1), Fraction(1, 10**6))
    >>> account, spent = GaussianDp(), Loss.none()
    >>> for _ in range(100):
    ...     price = Loss.charged(Fraction(1, 10), Fraction(1, 10**7))
    ...     spent = account.total(
    ...         [spent, account.charged(spent, price, limit, Normal(Fraction(1, 2500)))]
    ...     )
    >>> account.allows(spent, limit), account.shown(spent, limit).epsilon < 0.9
    (True, True)
    """

    name = "gdp"
    terms = Terms.EITHER
    refuses_single = ""

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Sums of ε, δ and μ², and of prices, with the split and what added up before it."""
        return sum(losses, replace(Loss.none(), mu_squared=Fraction(0), simple=Loss.none()))

    def charged(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None = None) -> Loss:
        """The loss that a release of this price adds to the sums.
        Input: sums so far; limit; other facts of it.
        """
        if not (price.exact_epsilon or price.exact_delta or price.exact_rho):
            return replace(price, exact_rho=None)
        if spent.split is not None:
            counted = _in_sums(spent, price, limit, normal)
        else:
            offers = [_added(price, limit - _both(spent), normal)]
            if _sums_for(spent, limit):
                # which has the largest m
                splits = SPLITS if price.exact_delta or price.exact_rho else SPLITS[:1]
                starts = [
                    replace(_both(spent), split=split, before=_both(spent)) for split in splits
                ]
                sums = [(at, _in_sums(at, price, limit, normal)) for at in starts]
                offers += [
                    replace(counted, split=at.split, before=at.before) for at, counted in sums
                ]
            counted = max(offers, key=lambda offer: self._more(spent, offer, limit))
        epsilon = price.exact_epsilon if price.exact_rho is None else counted.exact_epsilon
        return replace(counted, simple=Loss.charged(epsilon, price.exact_delta))

    def reserved(self, opening: Loss, limit: Loss) -> Loss:
        """Its ε and δ, and if it was paid after the two sums began, the μ² of this ε."""
        epsilon, delta = limit.exact_epsilon, limit.exact_delta
        squares = pure_to_gdp(epsilon) if _squares(opening) else Fraction(0)
        return replace(_counted(epsilon, delta, squares), simple=Loss.charged(epsilon, delta))

    def allows(self, total: Loss, limit: Loss) -> bool:
        """Whether sums are within the limit."""
        if total.split is None:
            return _both(total) <= limit
        return _sums(total, limit).holds(*_since(total))

    def more(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None) -> int:
        """Number of further releases of this price that are accepted,
        if no others come between them.
        """
        return self._more(spent, self.charged(spent, price, limit, normal), limit)

    def _more(self, spent: Loss, item: Loss, limit: Loss) -> int:
        """As `more`, from what each of them adds; at least 1 if the first one is accepted."""
        total = self.total([spent, item])
        if not self.allows(total, limit):
            return 0
        left = limit - spent
        if total.split is None:
            return min(
                _times(left.exact_epsilon, item.exact_epsilon),
                _times(left.exact_delta, item.exact_delta),
            )
        sums = _sums(total, limit)
        _, delta, squares = _since(replace(spent, split=total.split, before=total.before))
        free = sums.split * sums.delta - delta
        by_epsilon = min(
            _times(left.exact_epsilon, item.exact_epsilon), _times(free, item.exact_delta)
        )
        keys = max(item.exact_delta - sums.rate * item.exact_epsilon, Fraction(0))
        by_square = min(_times(sums.most_squares - squares, _squares(item)), _times(free, keys))
        return max(1, by_epsilon, by_square)

    def shown(self, total: Loss, limit: Loss) -> Loss:
        """The (ε, δ) of the sum that says less.
        It is a figure for people: what is promised is the limit.
        """
        if total.split is None:
            return _both(total)
        epsilon, delta = _sums(total, limit).shown(*_since(total))
        return (total.before or Loss.none()) + Loss(kept(epsilon, ceil), delta)

    def left(self, total: Loss, limit: Loss) -> Loss:
        """The largest ε of one pure release that is accepted, and the δ that is left for keys."""
        if total.split is None:
            return limit - _both(total)
        sums, (epsilon, delta, squares) = _sums(total, limit), _since(total)
        by_square = gdp_to_pure(max(sums.most_squares - squares, Fraction(0)))
        return Loss.limit(
            max(sums.epsilon - epsilon, by_square, Fraction(0)), sums.split * sums.delta - delta
        )

    def part(self, total: Loss, share: Fraction, limit: Loss) -> Loss:
        """The price of a share of the limit, in ε or in ρ = μ²/2, with a δ.

        Bound:  while prices add up, a share is that part of ε and of δ, or it begins the two sums
                with that part of m, if that buys less noise on a count. Then each sum has a used
                part, Σε_i/ε and Σμ_i²/m of what was left when it began. The price is that share of
                the sum whose used part is smaller; at equal parts, of the one that buys less noise
                on a count. So the smaller used part is at most the sum of these shares, and shares
                that add up to 1 are all accepted. In ε the δ is `TwoSums.rate` of it, so that
                Gaussian noise of that price counts as its ε; in ρ it is for keys, `TwoSums.keys`
        """
        sums, epsilon = _sums_for(total, limit), share * limit.exact_epsilon
        if sums is None or (total.split is None and epsilon >= sums.epsilon):
            return limit.share(share)
        fraction = epsilon / sums.epsilon
        squares = fraction * sums.most_squares
        used, used_square = (
            (Fraction(0), Fraction(0)) if total.split is None else _used(total, sums)
        )
        if _quieter(squares, epsilon) if used == used_square else used_square < used:
            return Loss.limit_rho(squares / 2, fraction * sums.keys)
        if total.split is None:
            return Loss.limit(epsilon, min(share * limit.exact_delta, fraction * sums.delta))
        return Loss.limit(epsilon, sums.rate * epsilon)

    def each(self, total: Loss, number: int, limit: Loss) -> Loss:
        """The price of each of so many equal releases:
        of what is left of the sum that buys less noise on a count.
        """
        sums, left, each = _sums_for(total, limit), limit - _both(total), Fraction(1, number)
        if sums is None or (total.split is None and number == 1):
            return left.share(each)
        _, delta, square = (Fraction(0),) * 3 if total.split is None else _since(total)
        epsilon, square = (
            max(left.exact_epsilon, Fraction(0)) * each,
            (sums.most_squares - square) * each,
        )
        part = (sums.split * sums.delta - delta) / (sums.split * sums.delta) * each
        if square > 0 and _quieter(square, epsilon):
            return Loss.limit_rho(square / 2, part * sums.keys)
        return (
            left.share(each)
            if total.split is None
            else Loss.limit(epsilon, sums.rate * sums.epsilon * part)
        )

    def size(self, counted: Loss, total: Loss, limit: Loss) -> Fraction:
        """Its part of the sum whose used part is smaller, as a part of ε."""
        if total.split is not None and _squares(counted):
            sums = _sums(total, limit)
            used, used_square = _used(total, sums)
            if used_square < used:
                return _squares(counted) / sums.most_squares * sums.epsilon
        return counted.exact_epsilon


def _both(total: Loss) -> Loss:
    """The ε and the δ alone."""
    return Loss(total.exact_epsilon, total.exact_delta)


def _sums(total: Loss, limit: Loss) -> TwoSums:
    """The filter that began, with what the limit had left then."""
    left = limit if total.before is None else limit - total.before
    return TwoSums(left.exact_epsilon, left.exact_delta, total.split or SPLITS[0])


def _sums_for(total: Loss, limit: Loss) -> TwoSums | None:
    """The filter that began or, before that, the one that a share would begin;
    None if nothing is left for it.
    """
    sums = _sums(total if total.split is not None else replace(total, before=_both(total)), limit)
    return sums if sums.epsilon > 0 and sums.delta > 0 else None


def _since(total: Loss) -> tuple[Fraction, Fraction, Fraction]:
    """The sums of ε, δ and μ² since the filter began."""
    since = total if total.before is None else total - total.before
    return since.exact_epsilon, since.exact_delta, _squares(total)


def _added(price: Loss, left: Loss, normal: Normal | None) -> Loss:
    """A release where prices add up: its price, or for a ρ an (ε_i, δ_i) that it implies."""
    if price.exact_rho is None:
        return _counted(price.exact_epsilon, price.exact_delta, Fraction(0))
    slack = _SPARED * max(left.exact_delta - price.exact_delta, _LEAST)
    if normal is None:
        epsilon = Fraction(zcdp_to_epsilon(price.exact_rho, slack))
    else:
        epsilon = gdp_to_epsilon(normal.mu_squared, slack)
    return _counted(epsilon, price.exact_delta + slack, Fraction(0))


def _in_sums(total: Loss, price: Loss, limit: Loss, normal: Normal | None) -> Loss:
    """A release in both sums, beside what they have so far."""
    sums, since = _sums(total, limit), _since(total)
    epsilon, delta = price.exact_epsilon, price.exact_delta
    if price.exact_rho is not None and normal is None:
        slack = _SPARED * max(sums.split * sums.delta - since[1] - delta, _LEAST)
        epsilon, delta = Fraction(zcdp_to_epsilon(price.exact_rho, slack)), delta + slack
    if normal is None:
        return _counted(epsilon, delta, pure_to_gdp(epsilon))
    if price.exact_rho is None and not delta:
        return _counted(epsilon, delta, min(normal.mu_squared, pure_to_gdp(epsilon)))
    if price.exact_rho is None and (normal.keys or delta <= sums.rate * epsilon):
        return _counted(epsilon, delta, normal.mu_squared)
    keys = delta if normal.keys else Fraction(0)
    return _counted(*sums.gaussian(normal.mu_squared, keys, since, limit.exact_epsilon))


def _used(total: Loss, sums: TwoSums) -> tuple[Fraction, Fraction]:
    """The used parts of the sum of ε and of that of μ²."""
    epsilon, _, squares = _since(total)
    return epsilon / sums.epsilon, squares / sums.most_squares if sums.most_squares else Fraction(2)


def _quieter(mu_squared: Fraction, epsilon: Fraction) -> bool:
    """Whether Gaussian noise of this μ² has a smaller deviation than Laplace noise of this ε."""
    return sqrt(mu_squared) > float(epsilon) / sqrt(2)


def _counted(epsilon: Fraction, delta: Fraction, mu_squared: Fraction) -> Loss:
    """The numbers that are added up, rounded up."""
    return replace(Loss.charged(epsilon, delta), mu_squared=kept(mu_squared, ceil))


def _squares(total: Loss) -> Fraction:
    return total.mu_squared or Fraction(0)


def _times(free: Fraction, one: Fraction) -> int:
    """Number of times that one loss fits into the free part."""
    if free < 0:
        return 0
    return int(min(free // one, MANY)) if one else MANY
