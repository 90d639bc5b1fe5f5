"""The noisy totals of a question with their names and their parts of the price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from dpframe.plan.totals import Total

__all__ = ["Allotment"]


@dataclass(frozen=True)
class Allotment:
    """A total, its names in the released table, and its weight when the price is split.

    `share` is the weight where ρ is split. `pure` is the weight where ε is split over Laplace noise, if that weight
    differs. A total of weight 0 is not measured. A `hidden` total only finds the keys: its number is not released. A
    sum with a count `beside` it may be measured as a pair with that count, for the price of both: see
    `theory.formulas.sensitivity.pairs`. `columns` is how many released columns follow from the total. It is a fraction
    if a column needs several totals.
    """

    names: tuple[str, ...]
    total: Total
    share: Fraction
    pure: Fraction | None = None
    hidden: bool = False
    beside: Allotment | None = None
    columns: Fraction = Fraction(1)

    @property
    def weight(self) -> int:
        """The weight of the count in the pair: the largest value, in units of the sum for one unit of the count."""
        assert self.beside is not None
        return self.total.grid.magnitude << (self.total.fraction - self.beside.total.fraction)

    @property
    def epsilon_share(self) -> Fraction:
        """The weight if ε is split."""
        return self.share if self.pure is None else self.pure

    def and_also(self, other: Allotment) -> Allotment:
        """One total for the columns of both allotments."""
        names, share = (*self.names, *other.names), max(self.share, other.share)
        return replace(self, names=names, share=share, columns=self.columns + other.columns)
