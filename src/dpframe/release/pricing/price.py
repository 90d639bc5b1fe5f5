"""The price of one release, read once from the arguments, and the noise that it buys.

A budget counts (ε, δ) or (ρ, δ). A price is in the terms of its budget, or an ε that is paid from a
budget in ρ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import Any, ClassVar, NoReturn, Protocol

from dpframe.budget import Loss, Terms, read_delta, read_epsilon, read_rho, written_number
from dpframe.errors import DeltaRequired, InvalidPrice, UnsupportedOperation
from dpframe.plan import Question, check_choice
from dpframe.release.pricing.allocation import (
    Allocation,
    allocate_epsilon,
    allocate_gdp,
    allocate_rho,
    joint_plan,
    log_noise,
    moved_totals,
    parts_of,
    planned,
    split,
)
from dpframe.release.pricing.bought_noise import PricedTotal, choice_of, pieces, pure_paid_in_rho
from dpframe.release.pricing.noise import NoiseKind, NoisePlan, Rule
from dpframe.release.pricing.shared_noise import check_shared
from dpframe.theory.formulas.loss import calibration, choices_rho, gdp_to_pure

_PAID = "{} paid from this budget with Gaussian noise: release(rho=0.01)."
_MARGINS = "margins='measured' is"


class PricedAccount(Protocol):
    """An account of which a share can be a price."""

    @property
    def terms(self) -> Terms:
        """The terms of its losses."""
        ...

    def part(self, share: Fraction, name: str | None = None) -> Loss:
        """The price of a share of its limit."""
        ...


@dataclass(frozen=True)
class Price(ABC):
    """The most that a release may cost: an amount of ε or ρ, a δ, and the noise that is wanted.

    A part of a price has all of its δ, which is charged once. `typed` holds the numbers as they
    were typed, for the description under a release's name.
    """

    amount: Fraction
    delta: Fraction
    noise: NoiseKind = NoiseKind.AUTO
    typed: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    terms: ClassVar[Terms]  # the terms of the amount: ε or ρ
    converts: ClassVar[bool] = False  # whether it is paid in other terms than its own

    def part(self, share: Fraction) -> Price:
        """A part of the ε or ρ."""
        return replace(self, amount=self.amount * share)

    @abstractmethod
    def plan(
        self, question: Question, noisiness: Callable[[NoisePlan], float] = log_noise
    ) -> NoisePlan:
        """The noise that the price buys for a question, in the way with the least noise.
        Errors: DeltaRequired.
        """

    def allocations(
        self, parts: Sequence[PricedTotal], *, finds: bool, joint: bool = False
    ) -> list[Allocation]:
        """The ways to spend it on totals, see `allocate_epsilon`;
        not of a price whose cost follows from its noise.
        """
        raise NotImplementedError

    @abstractmethod
    def gaussian(self, what: str) -> Price:
        """The price for Gaussian noise alone.
        Input: what: the subject of a refusal, such as "marginals are".
        """

    def cost(self, allocation: Allocation, asks: Sequence[Question]) -> Loss:
        """The cost of one way to spend the price on questions;
        0 if no unit can change an answer.
        """
        nothing = not any(moved_totals(question) for question in asks)
        delta = allocation.uses_delta or any(question.private_keys for question in asks)
        return (self.part(Fraction(0)) if nothing else self).loss(delta=delta)

    @abstractmethod
    def loss(self, *, delta: bool) -> Loss:
        """The loss that is charged, with or without the δ."""

    @abstractmethod
    def laplace_scale(self, l1: int) -> float:
        """The scale of Laplace noise that costs all of this, on
        numbers that one unit moves by l1.
        """

    @property
    def noises(self) -> list[NoiseKind]:
        """The kinds of noise that may be chosen from."""
        normal = self.noise.normal and self._normal
        may_be = {NoiseKind.LAPLACE: self.noise.pure, NoiseKind.GAUSSIAN: normal}
        return [kind for kind, bought in may_be.items() if bought]

    @property
    def _normal(self) -> bool:
        """Whether Gaussian noise can be bought."""
        return self.delta > 0

    def plans(self, question: Question) -> dict[NoiseKind, NoisePlan]:
        """The noise that the price buys, for each kind of noise that may be chosen."""
        return {kind: replace(self, noise=kind).plan(question) for kind in self.noises}


@dataclass(frozen=True)
class EpsilonPrice(Price):
    """(ε, δ), from a budget that counts these."""

    terms = Terms.EPSILON

    def plan(
        self, question: Question, noisiness: Callable[[NoisePlan], float] = log_noise
    ) -> NoisePlan:
        """The plan with the least noise.
        Its cost is at most the price; if nothing uses δ, it is not charged.

        Bound:  see `allocate_epsilon`. Keys found in the data are released by the optimal rule for
                their ε and δ, see `selection_scale`; or by a threshold. Groups of one unit alone
                then pass it with probability at most δ, over all groups of the unit. A threshold on
                a Gaussian number shares δ with the noise, see `joint_plan`. A total that no unit
                can change takes no part of the price, and no noise
        Source: Desfontaines et al. 2020, arXiv:2006.03684, for keys; and as `allocate_epsilon`
        """
        check_shared(question, self.noise)
        if not self.noise.pure and self.delta == 0:
            raise DeltaRequired(
                "Gaussian noise needs a δ above 0: release(epsilon=..., delta=1e-6)."
            )
        parts = parts_of(question)
        plans = []
        for allocation in self.allocations(parts, finds=question.private_keys):
            plan = None
            if allocation.rule is Rule.GAUSSIAN and question.private_keys:
                plan = joint_plan(question, parts, allocation, self.amount, self.delta)
            plans.append(plan or planned(question, allocation, self.cost(allocation, [question])))
        return min(plans, key=noisiness)

    def allocations(
        self, parts: Sequence[PricedTotal], *, finds: bool, joint: bool = False
    ) -> list[Allocation]:
        return allocate_epsilon(
            parts, self.amount, self.delta, self.noise, finds=finds, joint=joint
        )

    def gaussian(self, what: str) -> Price:
        if not self.noise.normal:
            raise UnsupportedOperation(
                f"{what} measured with Gaussian noise: release(epsilon=..., delta=1e-6)."
            )
        return replace(self, noise=NoiseKind.GAUSSIAN)

    def loss(self, *, delta: bool) -> Loss:
        return Loss.charged(self.amount, self.delta if delta else Fraction(0))

    def laplace_scale(self, l1: int) -> float:
        return calibration.laplace_scale(l1, self.amount)


@dataclass(frozen=True)
class RhoPrice(Price):
    """(ρ, δ), from a budget that counts these. The δ is for keys found in the data alone."""

    terms = Terms.RHO

    @property
    def _normal(self) -> bool:
        return True

    def plan(
        self, question: Question, noisiness: Callable[[NoisePlan], float] = log_noise
    ) -> NoisePlan:
        """Gaussian or rounded Laplace noise of ρ, see `allocate_rho`.

        Choices are made by the exponential mechanism, or by permute-and-flip if its error is
        smaller.
        """
        check_shared(question, self.noise)
        price = self if question.shape is None else self.gaussian(_MARGINS)
        allocations = price.allocations(parts_of(question), finds=question.private_keys)
        plans = (
            planned(question, allocation, self.cost(allocation, [question]))
            for allocation in allocations
        )
        return min(plans, key=noisiness)

    def allocations(
        self, parts: Sequence[PricedTotal], *, finds: bool, joint: bool = False
    ) -> list[Allocation]:
        return allocate_rho(parts, self.amount, self.delta, self.noise)

    def gaussian(self, what: str) -> Price:
        if not self.noise.normal:
            raise UnsupportedOperation(_PAID.format(what))
        return replace(self, noise=NoiseKind.GAUSSIAN)

    def loss(self, *, delta: bool) -> Loss:
        return Loss.charged_rho(self.amount, self.delta if delta else Fraction(0))

    def laplace_scale(self, l1: int) -> float:
        return calibration.laplace_scale_rho(l1, self.amount)


@dataclass(frozen=True)
class GaussianPrice(RhoPrice):
    """A μ² = 2ρ of Gaussian privacy, with a δ for keys found in the data:
    a share of a budget that counts μ².

    It buys Gaussian or Laplace noise, and choices by permute-and-flip: see `allocate_gdp`.
    """

    def allocations(
        self, parts: Sequence[PricedTotal], *, finds: bool, joint: bool = False
    ) -> list[Allocation]:
        return allocate_gdp(parts, 2 * self.amount, self.delta, self.noise)

    @property
    def pure(self) -> EpsilonPrice:
        """The ε of which every mechanism has at most this μ², with the
        δ: for what has no plan in μ².
        """
        return EpsilonPrice(gdp_to_pure(2 * self.amount), self.delta, self.noise, self.typed)


@dataclass(frozen=True)
class EpsilonFromRho(Price):
    """An ε that is paid from a budget in ρ.

    It buys rounded Laplace noise and choices of that ε. Their cost in ρ is charged.
    """

    terms = Terms.EPSILON
    converts = True

    def plan(
        self, question: Question, noisiness: Callable[[NoisePlan], float] = log_noise
    ) -> NoisePlan:
        """Laplace noise of each part of ε, and choices by
        permute-and-flip, which cost `choices_rho`.
        """
        check_shared(question, self.noise)
        if question.shape is not None:
            self.gaussian(_MARGINS)
        if not self.noise.pure:
            raise InvalidPrice(
                "Gaussian noise has no ε of its own; from this budget it is paid in ρ: "
                "release(rho=0.01)."
            )
        numbers, selections = split(
            [part for part in parts_of(question) if part.weight], selects=True
        )
        noises = [
            pure_paid_in_rho(self.noise, part.allotment, self.amount * part.weight)
            for part in numbers
        ]
        choices = [choice_of(part.allotment, self.amount * part.weight) for part in selections]
        rho = sum((noise.rho for noise in noises), Fraction(0))
        rho += sum(
            (choices_rho(pieces(p.allotment), self.amount * p.weight) for p in selections),
            Fraction(0),
        )
        cost = Loss.charged_rho(rho, self.delta if question.private_keys else Fraction(0))
        return planned(question, Allocation((*noises, *choices), self.delta, Rule.RHO), cost)

    def gaussian(self, what: str) -> NoReturn:
        raise UnsupportedOperation(_PAID.format(what))

    def loss(self, *, delta: bool) -> Loss:
        raise UnsupportedOperation("dp.Auto() is paid from this budget in ρ: release(rho=0.01).")

    def laplace_scale(self, l1: int) -> float:
        raise UnsupportedOperation("dp.Auto() is paid from this budget in ρ: release(rho=0.01).")


def read_noise(noise: object) -> NoiseKind:
    """The kind of noise that was typed. Errors: InvalidArgument, with the names there are."""
    check_choice(noise, tuple(kind.value for kind in NoiseKind), "noise")
    return NoiseKind(noise)


def read_price(
    terms: Terms,
    *,
    epsilon: object = None,
    delta: object = None,
    rho: object = None,
    noise: object = "auto",
) -> Price:
    """A price from typed arguments, for a budget in these terms.
    Errors: InvalidPrice, InvalidArgument.
    """
    amounts = {"epsilon": epsilon, "delta": delta, "rho": rho}
    if terms is not Terms.RHO and (rho is None or terms is Terms.EPSILON):
        if rho is not None:
            raise InvalidPrice(
                "This budget counts ε and δ: release(epsilon=..., delta=...), not rho=. A budget "
                "in ρ is dp.Budget(rho=...)."
            )
        if epsilon is None:
            raise InvalidPrice(
                "Say what the release may cost: release(epsilon=0.1). Groups that are found in "
                "the data need a δ too: release(epsilon=0.1, delta=1e-7). After df.dp the price "
                "is an argument of the question: df.dp.count(unit='user_id', "
                "budget=dp.Budget(epsilon=1.0), max_rows=5, epsilon=0.1)."
            )
        kind: type[Price] = EpsilonPrice
        amount = read_epsilon(epsilon)
    elif (rho is None) == (epsilon is None):
        raise InvalidPrice(
            "Say what the release may cost: release(rho=0.01). This budget counts ρ; "
            "release(epsilon=0.1) buys Laplace noise and is charged its ρ."
        )
    elif rho is None:
        amount, kind = read_epsilon(epsilon), EpsilonFromRho
    else:
        amount, kind = read_rho(rho), RhoPrice
    text = tuple(
        (name, written_number(value, name)) for name, value in amounts.items() if value is not None
    )
    return kind(amount, read_delta(delta), read_noise(noise), text)


def paid_price(
    account: PricedAccount,
    noise: object,
    name: str | None = None,
    /,
    *,
    share: object = None,
    **others: Any,
) -> Price:
    """The price that a release from an account pays:
    as typed, or that of a share of the budget, see `Budget.part`.

    Errors: InvalidPrice, also if another price is typed beside a share; InvalidArgument
    """
    if share is None:
        return read_price(account.terms, **others, noise=noise)
    if typed_too := [name for name, amount in others.items() if amount is not None]:
        raise InvalidPrice(
            f"share= is a price by itself; leave {typed_too[0]}= out: release(share=0.02)."
        )
    part = read_epsilon(share, "share")
    if part > 1:
        raise InvalidPrice("share= is a part of the whole budget, at most 1: release(share=0.02).")
    loss, typed = account.part(part, name), (("share", written_number(share, "share")),)
    if loss.exact_rho is None:
        return EpsilonPrice(loss.exact_epsilon, loss.exact_delta, read_noise(noise), typed)
    kind = GaussianPrice if account.terms is Terms.EITHER else RhoPrice
    return kind(loss.exact_rho, loss.exact_delta, read_noise(noise), typed)


_MOST = 1000  # prices in one table


def is_list(price: object) -> bool:
    """Whether several prices are listed: in a list, a tuple, a range, an array or a Series."""
    return isinstance(price, (list, tuple, range)) or (
        hasattr(type(price), "__array__") and len(getattr(price, "shape", ())) == 1
    )


def read_prices(listed: Any, terms: Terms) -> list[Any]:
    """Listed prices. Errors: InvalidPrice for none, and for more than 1,000."""
    prices = list(islice(listed, _MOST + 1))
    if not 1 <= len(prices) <= _MOST:
        raise InvalidPrice(
            f"{terms.value}=[...] lists from 1 to {_MOST:,} prices, such as {terms.value}=[0.1, 1]."
        )
    return prices


def described_price(plan: NoisePlan, price: Price) -> dict[str, Any]:
    """A price and the noise that it buys, as JSON, for the description of a named release.
    Scales have six digits.
    """
    scales = {
        ", ".join(noise.allotment.names): f"{noise.label} {noise.scale:.6g}"
        for noise in plan.noises
    }
    amounts: Mapping[str, str] = dict(price.typed)
    return {
        "price": amounts,
        "noise": price.noise.value,
        "scales": scales,
        "threshold": plan.threshold,
    }
