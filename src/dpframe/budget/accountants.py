"""How losses add up. An accountant says what a series of releases costs together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from dpframe.budget.losses import RHO_UNIT, Loss, Terms, read_delta, read_epsilon, read_rho
from dpframe.errors import InvalidPrice, UnsupportedOperation
from dpframe.theory.formulas.loss import rho_within

__all__ = ["ACCOUNTANTS", "Accountant", "Basic", "Pld", "Zcdp", "accountant_named", "read_limit"]


class Accountant(Protocol):
    """The rule by which losses of adaptively chosen releases compose.

    `terms` says whether it counts ε or ρ (and δ beside it). `refuses_single` is the reason why a release on its own is
    refused, empty where it is not.
    """

    name: str
    terms: Terms
    refuses_single: str

    def total(self, losses: Iterable[Loss]) -> Loss:
        """The loss of all releases together."""
        ...


class Basic:
    """Sums of ε and of δ.

    Holds when each release is chosen after seeing the ones before, with its price fixed before it is drawn: basic
    composition is a valid filter. Source: Dwork and Roth 2014, theorem 3.16 and section 3.5; Rogers et al. 2016,
    arXiv:1605.08294, for adaptively chosen prices.

    >>> from fractions import Fraction
    >>> Basic().total([Loss.charged(Fraction("0.1"), Fraction(0)), Loss.charged(Fraction("0.2"), Fraction("1e-9"))])
    Loss(epsilon=0.3, delta=1e-09)
    """

    name = "basic"
    terms = Terms.EPSILON
    refuses_single = ""

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Componentwise sum."""
        return sum(losses, Loss.none())


class Zcdp:
    """Sums of ρ and of δ: zero-concentrated privacy, with δ for keys found in the data.

    Also a valid filter when queries and prices are chosen adaptively: the Rényi divergences of each order add up under
    a limit fixed beforehand. Source: Bun and Steinke 2016, arXiv:1605.02065, lemmas 1.7 and 8.2 (with δ); Feldman and
    Zrnic 2021, arXiv:2008.11193, and Whitehouse et al. 2023, arXiv:2203.05481, for the filter.

    >>> from fractions import Fraction
    >>> Zcdp().total([Loss.charged_rho(Fraction(1, 4), Fraction(0)), Loss.charged_rho(Fraction(1, 2), Fraction(0))])
    Loss(rho=0.75, delta=0.0)
    """

    name = "zcdp"
    terms = Terms.RHO
    refuses_single = ""

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Componentwise sum."""
        return sum(losses, Loss.none(in_rho=True))


class Pld:
    """Privacy loss distributions within a batch that is fixed beforehand, sums of ε and δ over batches.

    A batch costs what its noise costs together, which is less than the sum of its queries. Batches are chosen
    adaptively, with their prices fixed before they are drawn, so they add up as in `Basic`. One release after another
    is refused: a privacy loss distribution describes mechanisms that are all chosen before the first answer is seen,
    and it is not known to be a filter for those chosen after.
    Source: Koskela et al. 2020, arXiv:1906.03049; Rogers et al. 2016, arXiv:1605.08294, for the batches.
    """

    name = "pld"
    terms = Terms.EPSILON
    refuses_single = (
        "A privacy loss distribution says what queries cost together when all of them are fixed before the first "
        "answer is seen; for queries chosen one after another it is not a valid filter. Release them as one: "
        "budget.plan([query, ...], epsilon=..., delta=...).release(), or use accountant='zcdp'."
    )

    def total(self, losses: Iterable[Loss]) -> Loss:
        """Componentwise sum, over batches."""
        return sum(losses, Loss.none())


ACCOUNTANTS: dict[str, type[Accountant]] = {kind.name: kind for kind in (Basic, Zcdp, Pld)}


def accountant_named(name: object) -> Accountant:
    """An accountant by its name. Errors: UnsupportedOperation, with the names there are."""
    if not isinstance(name, str) or name not in ACCOUNTANTS:
        said = f"accountant={name!r}" if isinstance(name, str) else "accountant="
        raise UnsupportedOperation(f"{said}: choose one of {', '.join(map(repr, ACCOUNTANTS))}.")
    return ACCOUNTANTS[name]()


def read_limit(epsilon: object, delta: object, rho: object, accountant: object) -> tuple[Accountant, Loss]:
    """The accountant and the limit of a budget, as they were typed.

    Input:  epsilon and delta, or rho and delta; accountant: a name, or None for "zcdp" with rho= and "basic" without
    Errors: InvalidPrice, UnsupportedOperation, which say what to type
    """
    chosen = accountant_named(accountant if accountant is not None else "basic" if rho is None else "zcdp")
    if chosen.terms is Terms.EPSILON:
        if rho is not None:
            raise UnsupportedOperation(
                f"accountant={chosen.name!r} counts ε and δ; give epsilon= and delta=, not rho=, or say "
                "accountant='zcdp'."
            )
        if epsilon is None:
            raise InvalidPrice("A budget needs its limit: dp.Budget(epsilon=1.0, delta=1e-6).")
        return chosen, Loss.limit(read_epsilon(epsilon), read_delta(delta))
    if epsilon is not None:
        raise UnsupportedOperation(
            f"accountant={chosen.name!r} counts ρ and δ; give rho=, not epsilon=.{_rho_for(epsilon, delta)}"
        )
    if rho is None:
        raise InvalidPrice("A budget of this accountant needs its limit: dp.Budget(rho=0.02, accountant='zcdp').")
    return chosen, Loss.limit_rho(read_rho(rho), read_delta(delta))


def _rho_for(epsilon: object, delta: object) -> str:
    """The ρ that implies a wished (ε, δ), as a hint, rounded down to three digits."""
    target, slack = read_epsilon(epsilon), read_delta(delta)
    if not slack:
        return ""
    most = rho_within(target, slack)
    if most < RHO_UNIT:
        return ""
    rho = float(f"{float(most) * 0.9995:.3g}")
    return f" All of it in Gaussian noise, ε = {float(target):g} at δ = {float(slack):g} is about rho={rho:g}."
