"""The filter of an (ε, δ): when mechanisms that are chosen one after another may go on."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpframe.theory.formulas.loss.gaussian_privacy import (
    gdp_in_proportion,
    gdp_to_epsilon,
    gdp_within,
)

Sums = tuple[Fraction, Fraction, Fraction]  # Σε_i, Σδ_i, Σμ_i²
_CURVES = Fraction(1, 4)  # of the δ of the sum of ε: for Gaussian noise in that sum


@dataclass(frozen=True)
class TwoSums:
    """A filter with two sums side by side: of ε, and of the μ² of Gaussian privacy.
    It allows more while one holds.

    Input:  epsilon, delta: the limit, with δ > 0; split: the part s of δ for the sum of ε, and for
            what both sums need. The rest, (1 - s)·δ, is for the sum of μ²
    Bound:  all mechanisms together are (ε, δ)-private, if each of them and its price depend in any
            way on the answers before it. Let m be the largest μ² that implies (ε, (1 - s)·δ). A
            mechanism has an ε_i, a μ_i² and a δ_i = δ'_i + δ''_i, such that its answers on two
            neighbours are X >= (1 - δ'_i)·X0 and Y >= (1 - δ'_i)·Y0, where the pair X0, Y0 is
            μ_i-Gaussian private, and (ε_i, δ''_i)-private. They go on while Σδ_i <= s·δ and (Σε_i
            <= ε or Σμ_i² <= m).

            Proof. Take the mixture X = (1 - δ'_i)·X0 + δ'_i·X1 as a coin that is thrown at each
            mechanism, and let a transcript be lost from the first coin on that falls on X1. All
            sums are functions of the transcript, and they only grow. So each transcript, up to its
            end, belongs to A, whose Σε_i <= ε, or to B, whose Σμ_i² <= m. (i) On A, at each
            mechanism cut X0 down to min(X0, e^(ε_i)·Y0), which loses a mass of at most δ''_i. What
            is neither lost nor cut has, as a product of the steps, at most e^(Σε_i) <= e^ε times
            the mass that it has under the other table. (ii) On B, change the interaction so that it
            ends before Σμ_i² would exceed m. That is the filter of Gaussian privacy, and what it
            releases is √m-Gaussian private. Transcripts in B have the same probability as before,
            since on their way the filter never ends. For any function with values in [0, 1], such
            as the probability that nothing was lost in a transcript of E and B, the expectation is
            at most e^ε times that under the other table, plus (1 - s)·δ. (iii) A mass is lost by
            δ'_i at any mechanism or cut by δ''_i at a mechanism before A ends. The sum of these
            along each transcript is at most s·δ, so the probability is too. Together P(E) <=
            e^ε·Q(E) + (1 - s)·δ + s·δ. The roles of P and Q may be exchanged

            Where the δ'' of a mechanism does not fit, its ε_i is set above ε by itself. So the sum
            of ε does not hold from then on, and (i) needs no δ''. Pure mechanisms alone have δ_i =
            0, so the sum of ε stands beside that of μ² for nothing. Two sums that each need a δ,
            such as those of μ² and of ρ, would need both. A part of δ that is moved from one use to
            another after answers were seen has no proof either
    Begins: mechanisms whose (ε_i, δ_i) add up to (ε_0, δ_0) may come before, and the filter begins
            anew with (ε - ε_0, δ - δ_0). When it begins, and with which split, may depend on the
            answers before: given those, the rest is private at (ε - ε_0, δ - δ_0), and this is
            basic composition of two mechanisms
    Least:  **no filter that accepts all that adds up accepts any more than that.** Let the first
            mechanism be tight at (ε_1, δ_1), that is E[(1 - e^(ε_1 - L))^+] = δ_1 for its log ratio
            L under P, and d = δ - δ_1. If what adds up is accepted, then after each answer so is
            randomized response of (ε - ε_1, d), whose best event gains w(L) = d + (1 - d)·(1 -
            e^(ε_1 - L))^+, in all E[w(L)] = δ - δ_1·d. Let f(L) be the gain of another continuation
            that the filter accepts too. Who takes, after each answer, the better of the two gains
            E[max(w, f)], so E[(f - w)^+] <= δ_1·d <= δ²/4. But for that, the rest is (ε - ε_1, δ -
            δ_1)-private by itself: it begins anew. By the same step for each later one, all is
            basic composition. Twenty Gaussian mechanisms that together just meet (1, 1e-6) would
            reach 1.4e-6. So who counts μ² gives up something, and here that is (1 - s)·δ
    Source: Smith, Thakurta 2022, arXiv:2210.17520, and Koskela, Tobaben, Honkela 2022,
            arXiv:2209.15596, for the filter of μ²; Rogers et al. 2016, arXiv:1605.08294, for that
            of (ε, δ); Bun, Steinke 2016, arXiv:1605.02065, definition 8.1, for privacy but with
            probability δ. No such filter is known for other trade-off functions: arXiv:2602.06756.
            The union of the two sums, and that less cannot be given up, are ours

    >>> filter = TwoSums(Fraction(1), Fraction(1, 10**6), Fraction(1, 4))
    >>> (
    ...     filter.holds(Fraction(10), Fraction(0), Fraction(1, 20)),
    ...     filter.holds(Fraction(1), Fraction(0), Fraction(9)),
    ... )
    (True, True)
    """

    epsilon: Fraction
    delta: Fraction
    split: Fraction

    @property
    def most_squares(self) -> Fraction:
        """The limit m on the sum of μ²."""
        return gdp_within(self.epsilon, (1 - self.split) * self.delta)

    @property
    def rate(self) -> Fraction:
        """The δ'' of a Gaussian mechanism in the sum of ε, for each unit of its
        ε_i: s·δ/4 in all while Σε_i <= ε.
        """
        return _CURVES * self.split * self.delta / self.epsilon

    @property
    def keys(self) -> Fraction:
        """The δ that is left for keys, where Gaussian mechanisms take what `rate` gives them."""
        return (1 - _CURVES) * self.split * self.delta

    def gaussian(
        self, mu_squared: Fraction, keys: Fraction, sums: Sums, given_up: Fraction | None = None
    ) -> Sums:
        """The ε_i, δ_i and μ_i² of a mechanism of this μ², but with probability `keys`.

        Input:  the sums so far; given_up: what is added to an ε_i whose δ'' does not fit, so that
                the sum of ε does not hold from then on; by default ε. Where parts of a table have
                sums of their own, it is that of the limit
        """
        epsilon = gdp_in_proportion(mu_squared, self.rate)
        delta = keys + self.rate * epsilon
        if epsilon <= self.epsilon - sums[0] and delta <= self.split * self.delta - sums[1]:
            return epsilon, delta, mu_squared
        return epsilon + (self.epsilon if given_up is None else given_up), keys, mu_squared

    def holds(self, epsilon: Fraction, delta: Fraction, mu_squared: Fraction) -> bool:
        """Whether sums Σε_i, Σδ_i and Σμ_i² are within the filter."""
        if delta > self.split * self.delta:
            return False
        return epsilon <= self.epsilon or mu_squared <= self.most_squares

    def shown(
        self, epsilon: Fraction, delta: Fraction, mu_squared: Fraction
    ) -> tuple[Fraction, Fraction]:
        """The (ε, δ) of the sum that says less.
        It is a figure for people: what is promised is the limit.
        """
        if mu_squared > self.most_squares:
            return epsilon, delta
        kept_back = (1 - self.split) * self.delta
        by_square = min(gdp_to_epsilon(mu_squared, kept_back), self.epsilon)
        return (by_square, delta + kept_back) if by_square < epsilon else (epsilon, delta)
