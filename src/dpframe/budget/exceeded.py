"""Messages about a budget's limit: if it protects little, and when it is reached."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.budget.losses import Loss
from dpframe.theory.formulas.loss import zcdp_to_epsilon
from dpframe.usage import nearest, read_whole, warn

MOST_EPSILON = 10
MOST_DELTA = Fraction(1, 1000)
_PEOPLE = "person of "  # how a subject begins that has a name for its people
_USUAL_DELTA = 1e-6  # the δ at which a limit in ρ is converted to ε
# small enough that a δ far below 1 / _MOST_UNITS is not below the smallest price
_MOST_UNITS = 10**15
_SMALL_SHARE = 100  # A suggested δ is at most 1 / (_SMALL_SHARE · number of units).


def read_min_units(value: object) -> int | None:
    """The public lower bound on the number of units, or None. Errors: InvalidArgument.

    >>> read_min_units(500)
    500
    """
    if value is None:
        return None
    sentence = (
        "min_units= is a public lower bound on the number of units, a whole number from 1 to "
        "1e15, such as min_units=10_000. Do not count the units in the protected table."
    )
    return read_whole(value, 1, _MOST_UNITS, sentence)


def warn_of_weak(limit: Loss, min_units: object, typed: str) -> None:
    """Warn of a limit that protects little: ε above 10, or δ above 1/1000 or above 1 / min_units.

    Input:  limit: the largest loss of all releases of a budget; min_units: fewest units, or None;
            typed: the call that makes the budget, with {} for its limit
    Bound:  no row is read. At ε = 10 an outcome may be e^10, about 22,000 times, as likely with one
            unit's rows as without them. A release may show each unit's rows with probability δ and
            still satisfy its (ε, δ). So from δ = 1 / number of units on, the expected number of
            units that are shown is 1 or more
    Source: Dwork and Roth 2014, section 2.3, for δ
    Warns:  DpFrameWarning, at most one for ε and one for δ, when a budget is made

    A limit in ρ is judged by the ε that it implies at δ = 1e-6.
    """
    least = read_min_units(min_units)
    epsilon, words = limit.epsilon, f"ε = {limit.epsilon:g}"
    if limit.rho is not None:
        epsilon = zcdp_to_epsilon(limit.rho, _USUAL_DELTA)
        words = f"ρ = {limit.rho:g}, which implies ε = {epsilon:.4g} at δ = {_USUAL_DELTA:g}"
    main = "epsilon=1.0" if limit.rho is None else "rho=0.02"
    delta = _smaller_delta(limit, least)
    if epsilon > MOST_EPSILON:
        line = typed.format(
            main + (f", delta={min(limit.delta, delta):g}" if limit.exact_delta else "")
        )
        warn(
            f"This budget allows {words} in all. Above ε = {MOST_EPSILON} there is little "
            "protection: an answer may be more than 22,000 times as likely with one unit's rows "
            f"as without them. Type a smaller limit: {line}."
        )
    most, why = MOST_DELTA, "1/1000"
    if least is not None and Fraction(1, least) < most:
        most, why = Fraction(1, least), f"1/{least}, 1 over the smallest number of units"
    if limit.exact_delta > most:
        line = typed.format(f"{main}, delta={delta:g}")
        warn(
            f"This budget allows δ = {limit.delta:g} in all, which is above {why}. A release may "
            "show each unit's rows with probability δ, so δ should be far below 1 over the number "
            f"of units. Type a smaller δ: {line}."
        )


def _smaller_delta(limit: Loss, least: int | None) -> float:
    """The δ to suggest: a power of ten, at most 1e-6 and at most 1 / (100 · number of units)."""
    delta = Fraction(1, 10**6)
    while least is not None and delta * least * _SMALL_SHARE > 1:
        delta /= 10
    return float(delta)


def another_subject(own: str, other: str) -> str:
    """The message that a budget is about other units than a release, with the line to type.

    >>> another_subject("unit 'id', add-remove", "unit 'user', add-remove").partition(
    ...     "protected: "
    ... )[2][:43]
    "table.rename({'user': 'id'}).dp(unit='id'),"
    """
    (unit, _, relation), other_unit = own.rpartition(", "), other.rpartition(", ")[0]
    said = f"This budget protects {own}; this table is about {other}. Nothing was spent. "
    if unit and unit == other_unit:
        return f"{said}Protect this table under the same relation: neighbors={relation!r}."
    names = [text.removeprefix("unit ") for text in (other_unit, unit)]
    if other_unit.startswith(_PEOPLE) and not unit.startswith(_PEOPLE):
        line = (
            f"leave people= out, and protect this table with {unit}: rename its columns before "
            "df.dp(...)"
        )
    elif unit.startswith(_PEOPLE):
        line = (
            "say so where this table is protected: df.dp(unit=..., "
            f"people={unit.removeprefix(_PEOPLE)})"
        )
    elif any(
        text.count("'") != 2 or name == text
        for name, text in zip(names, (other_unit, unit), strict=True)
    ):
        line = (
            f"protect this table with the same unit, {unit}: rename its columns before df.dp(...)"
        )
    else:
        renamed = "{" + ": ".join(names) + "}"
        line = (
            "give the column one name where it is protected: "
            f"table.rename({renamed}).dp(unit={names[1]}), in pandas "
            f"table.rename(columns={renamed}).dp(unit={names[1]}). Or keep both names and say who "
            "they are, for both tables and from the first release on: df.dp(unit=..., "
            "people='patients')"
        )
    return (
        f"{said}If both name the same people, {line}. A second budget would double what these "
        "people can lose. Only other units, such as houses instead of people, take a budget of "
        "their own."
    )


def is_misnamed(own: str, other: str) -> bool:
    """Whether units have different names, which `df.dp(...)` can mend.

    >>> is_misnamed("unit 'id', add-remove", "unit 'user', add-remove")
    True
    >>> is_misnamed("unit 'id', add-remove", "unit 'id', replace")
    False
    """
    one, two = own.rpartition(", ")[0], other.rpartition(", ")[0]
    return one != two and all(unit.count("'") == 2 for unit in (one, two))


def second_budget(others: Sequence[str], subject: str) -> str:
    """The warning that another budget of a ledger is about the same units."""
    names = ", ".join(map(repr, others))
    return (
        f"This ledger has another budget about {subject}: {names}. What both spend adds up, and "
        "neither limit holds for these people. If they are the same people, pay from the one "
        f"budget: ledger.budget({others[0]!r})."
    )


def no_budget(name: str, others: Sequence[str]) -> str:
    """The message that a ledger has no budget of this name, with those that it has.

    >>> no_budget("ordrs", ["orders"]).partition(" To make")[0]
    "There is no budget 'ordrs' yet; this ledger has 'orders'. Did you mean 'orders'?"
    """
    have = f"; this ledger has {', '.join(map(repr, others))}" if others else ""
    line = f"ledger.budget({name!r}, epsilon=1.0)"
    return (
        f"There is no budget {name!r} yet{have}.{nearest(name, others)} To make it, give its "
        f"limit: {line}."
    )


def exceeded(charged: Loss, limit: Loss, remaining: Loss) -> str:
    """The message that a release costs more than the budget has left, with the line to type.

    >>> from fractions import Fraction
    >>> one = Loss.limit(Fraction(1), Fraction(0))
    >>> said = exceeded(Loss.charged(Fraction(1, 2), Fraction(0)), one, one - one)
    >>> print(said.split(". ")[0])
    The release costs ε = 0.5, and this budget of ε = 1 is spent: nothing is left
    """
    if not remaining.exact_size:
        return (
            f"The release costs {charged}, and this budget of {limit} is spent: nothing is left. "
            "Nothing was charged. budget.history() shows what it was spent on; a named release is "
            "free when it is repeated: release(..., name='...')."
        )
    less = f"Ask for less; what is left is {remaining.typed}."
    if charged.exact_delta and not limit.exact_delta:
        less = (
            "The budget has no δ: list the keys and leave delta= out, or make a budget with "
            "delta=1e-6."
        )
    elif charged.exact_delta and not remaining.exact_delta:
        main = (
            f"epsilon={remaining.epsilon!r}" if remaining.rho is None else f"rho={remaining.rho!r}"
        )
        less = (
            "The budget's δ is spent: list the keys, keys=[...], and leave delta= out; what is "
            f"left is {main}."
        )
    return (
        f"The release costs {charged}, and {remaining} of {limit} is left. Nothing was spent. "
        f"{less}"
    )
