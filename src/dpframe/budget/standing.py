"""What was spent of a budget and what is left, so that people can see how far it reaches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpframe.budget.losses import Loss


@dataclass(frozen=True)
class Standing:
    """Where a budget stands after its charges.

    `spent` is the loss under the budget's account, and `simple` that of adding up ε and δ, price by price. `more` is
    how many more releases like the last one are accepted, if no others come between them, and `price` is its price.
    `more` and `price` are None before the first charge.
    """

    limit: Loss
    spent: Loss
    simple: Loss
    more: int | None = None
    price: Loss | None = None

    @property
    def words(self) -> str:
        """Where the budget stands, in sentences.

        >>> from fractions import Fraction
        >>> one, much = Loss.limit(Fraction(1), Fraction(0)), Loss(Fraction(10), Fraction(0))
        >>> print(Standing(one, Loss(Fraction(3, 8), Fraction(0)), much, 57, Loss(Fraction(1, 10), Fraction(0))).words)
        ε = 0.375 of ε = 1 is spent; adding up prices would say ε = 10. 57 more like the last fit, ε = 0.1 each.
        """
        words = f"{self.spent} of {self.limit} is spent"
        if self.simple != self.spent:
            words += f"; adding up prices would say {self.simple}"
        if self.price is None:
            return f"{words}."
        if not self.more:
            return f"{words}. Another release like the last does not fit: {self.price}."
        number = "1 more release like the last fits" if self.more == 1 else f"{self.more:,} more like the last fit"
        return f"{words}. {number}, {self.price} each."

    def to_json(self) -> dict[str, Any]:
        """The standing as plain values."""
        return {"words": self.words, "more_like_this": self.more}
