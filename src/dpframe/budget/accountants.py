"""Accountants: rules by which the losses of several releases add up."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Protocol

from dpframe.budget.adaptive import MANY, GaussianDp, Normal
from dpframe.budget.losses import RHO_UNIT, Loss, Terms, read_delta, read_epsilon, read_rho
from dpframe.errors import InvalidPrice, UnsupportedOperation
from dpframe.theory.formulas.loss import rho_within


class Accountant(Protocol):
    """The rule by which losses of adaptively chosen releases compose.

    `terms` says whether it counts ε or ρ (both with δ). `refuses_single` is the reason why a single
    release is refused; it is empty if single releases are allowed.
    """

    name: str
    terms: Terms
    refuses_single: str

    def total(self, losses: Iterable[Loss]) -> Loss:
        """The sums for all releases together."""
        ...

    def charged(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None = None) -> Loss:
        """The loss that a release of this price adds to the sums.
        Input: sums so far; limit; other facts of it.
        """
        ...

    def reserved(self, opening: Loss, limit: Loss) -> Loss:
        """The part of the sums for an allowance of a limit. Input: that part when it was paid."""
        ...

    def allows(self, total: Loss, limit: Loss) -> bool:
        """Whether sums are within the limit."""
        ...

    def more(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None) -> int:
        """Number of further releases of this price that are accepted,
        if no others come between them.
        """
        ...

    def shown(self, total: Loss, limit: Loss) -> Loss:
        """The loss that the sums stand for."""
        ...

    def left(self, total: Loss, limit: Loss) -> Loss:
        """The loss that may still be charged."""
        ...

    def part(self, total: Loss, share: Fraction, limit: Loss) -> Loss:
        """The price of a share of the limit."""
        ...

    def each(self, total: Loss, number: int, limit: Loss) -> Loss:
        """The price of each of so many equal releases, which together take all that is left."""
        ...

    def size(self, counted: Loss, total: Loss, limit: Loss) -> Fraction:
        """The ε or ρ of the limit that a charge has used;
        the sum over all charges is the part of it that was spent.
        """
        ...


class _Sums:
    """An accountant whose sums are the loss itself, and are compared with the limit one by one."""

    terms = Terms.EPSILON
    refuses_single = ""

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Componentwise sum."""
        return sum(losses, Loss.none(in_rho=self.terms is Terms.RHO))

    def charged(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None = None) -> Loss:
        """The price."""
        return price

    def reserved(self, opening: Loss, limit: Loss) -> Loss:
        """The limit."""
        return limit

    def allows(self, total: Loss, limit: Loss) -> bool:
        """Whether each sum is at most the limit."""
        return total <= limit

    def more(self, spent: Loss, price: Loss, limit: Loss, normal: Normal | None) -> int:
        """Number of further releases of this price that are accepted."""
        left = limit - spent
        pairs = (
            (left.exact_epsilon, price.exact_epsilon),
            (left.exact_delta, price.exact_delta),
            (left.exact_rho or Fraction(0), price.exact_rho or Fraction(0)),
        )
        return min((int(free // one) for free, one in pairs if one), default=MANY)

    def shown(self, total: Loss, limit: Loss) -> Loss:
        """The sums."""
        return total

    def left(self, total: Loss, limit: Loss) -> Loss:
        """The limit without the sums."""
        return limit - total

    def part(self, total: Loss, share: Fraction, limit: Loss) -> Loss:
        """The share of each number of the limit."""
        return limit.share(share)

    def each(self, total: Loss, number: int, limit: Loss) -> Loss:
        """The same part of each number that is left."""
        return (limit - total).share(Fraction(1, number))

    def size(self, counted: Loss, total: Loss, limit: Loss) -> Fraction:
        """Its ε or ρ."""
        return counted.exact_size


class Basic(_Sums):
    """Sums of ε and of δ.

    Basic composition is a valid filter: it also holds if each release is chosen after the answers
    before it are seen, with its price fixed before its noise is drawn. Source: Dwork and Roth 2014,
    theorem 3.16 and section 3.5; Rogers et al. 2016, arXiv:1605.08294, for adaptively chosen
    prices.

    >>> from fractions import Fraction
    >>> Basic().total(
    ...     [
    ...         Loss.charged(Fraction("0.1"), Fraction(0)),
    ...         Loss.charged(Fraction("0.2"), Fraction("1e-9")),
    ...     ]
    ... )
    Loss(epsilon=0.3, delta=1e-09)
    """

    name = "basic"


class Zcdp(_Sums):
    """Sums of ρ and of δ: zero-concentrated privacy, with δ for keys that come from the data.

    This is also a valid filter if queries and prices are chosen adaptively: the Rényi divergences
    of each order add up under a limit that is fixed beforehand. Source: Bun and Steinke 2016,
    arXiv:1605.02065, lemmas 1.7 and 8.2 (with δ); Feldman and Zrnic 2021, arXiv:2008.11193, and
    Whitehouse et al. 2023, arXiv:2203.05481, for the filter.

    >>> from fractions import Fraction
    >>> Zcdp().total(
    ...     [
    ...         Loss.charged_rho(Fraction(1, 4), Fraction(0)),
    ...         Loss.charged_rho(Fraction(1, 2), Fraction(0)),
    ...     ]
    ... )
    Loss(rho=0.75, delta=0.0)
    """

    name = "zcdp"
    terms = Terms.RHO


class Pld(_Sums):
    """Privacy loss distributions within a batch that is fixed
    beforehand; sums of ε and δ over batches.

    A batch costs the joint loss of all its noise, which is less than the sum over its queries.
    Batches may be chosen adaptively, with their prices fixed before their noise is drawn, so they
    add up as in `Basic`. Single releases are refused: a privacy loss distribution describes
    mechanisms that are all chosen before the first answer is seen. It is not known whether it is a
    valid filter for mechanisms that are chosen later.
    Source: Koskela et al. 2020, arXiv:1906.03049; Rogers et al. 2016, arXiv:1605.08294, for the
            batches.
    """

    name = "pld"
    refuses_single = (
        "A privacy loss distribution gives the joint cost of queries that are all fixed before "
        "the first answer is seen; for queries chosen one after another it is not a valid filter. "
        "Release them as one batch: budget.plan([query, ...], epsilon=..., delta=...).release(), "
        "or use accountant='zcdp'."
    )


ACCOUNTANTS: dict[str, type[Accountant]] = {
    kind.name: kind for kind in (Basic, Zcdp, Pld, GaussianDp)
}


def accountant_named(name: object) -> Accountant:
    """An accountant by its name. Errors: UnsupportedOperation, which lists the names."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        argument = f"accountant={name!r}" if isinstance(name, str) else "accountant="
        raise UnsupportedOperation(
            f"{argument}: choose one of {', '.join(map(repr, ACCOUNTANTS))}."
        )
    return ACCOUNTANTS[name]()


def read_limit(
    epsilon: object, delta: object, rho: object, accountant: object
) -> tuple[Accountant, Loss]:
    """The accountant and the limit of a budget, as they were typed.

    Input:  epsilon and delta, or rho and delta; accountant: a name, or None for "zcdp" with rho=,
            "gdp" with a δ and "basic" with ε alone
    Errors: InvalidPrice, UnsupportedOperation, which say what to type
    """
    usual = "zcdp" if rho is not None else "gdp" if read_delta(delta) else "basic"
    rule = accountant_named(accountant if accountant is not None else usual)
    if rule.terms is not Terms.RHO:
        if rho is not None:
            raise UnsupportedOperation(
                f"accountant={rule.name!r} counts ε and δ; give epsilon= and delta=, not rho=, or "
                "type accountant='zcdp'."
            )
        if epsilon is None:
            raise InvalidPrice("A budget needs its limit: dp.Budget(epsilon=1.0, delta=1e-6).")
        if rule.terms is Terms.EITHER and not read_delta(delta):
            raise InvalidPrice(
                "accountant='gdp' needs a δ above 0: dp.Budget(epsilon=1.0, delta=1e-6)."
            )
        return rule, Loss.limit(read_epsilon(epsilon), read_delta(delta))
    if epsilon is not None:
        raise UnsupportedOperation(
            f"accountant={rule.name!r} counts ρ and δ; give rho=, not "
            f"epsilon=.{_rho_for(epsilon, delta)}"
        )
    if rho is None:
        raise InvalidPrice(
            "A budget of this accountant needs its limit: dp.Budget(rho=0.02, accountant='zcdp')."
        )
    return rule, Loss.limit_rho(read_rho(rho), read_delta(delta))


def _rho_for(epsilon: object, delta: object) -> str:
    """A sentence with the ρ that implies the typed (ε, δ), rounded down to three
    digits; empty if there is none.
    """
    target, slack = read_epsilon(epsilon), read_delta(delta)
    if not slack:
        return ""
    most = rho_within(target, slack)
    if most < RHO_UNIT:
        return ""
    rho = float(f"{float(most) * 0.9995:.3g}")
    return (
        f" If all noise is Gaussian, ε = {float(target):g} at δ = {float(slack):g} is about "
        f"rho={rho:g}."
    )
