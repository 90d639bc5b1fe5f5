"""How the losses of mechanisms and keys add up to what was charged, as a certificate says it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpframe.budget import Loss, Normal
from dpframe.fields import FieldDict
from dpframe.release.certificate.measures import Stated
from dpframe.release.certificate.rationals import text
from dpframe.release.pricing import Rule
from dpframe.theory.formulas.loss import zcdp_order


def charge_facts(cost: Loss, normal: Normal | None) -> FieldDict:
    """What was charged, and the μ² that the account counts."""
    in_rho = cost.exact_rho is not None
    size = {"rho": text(cost.exact_rho or 0)} if in_rho else {"epsilon": text(cost.exact_epsilon)}
    more = {} if normal is None else {"gaussian": {"mu_squared": text(normal.mu_squared), "keys": normal.keys}}
    return {**size, "delta": text(cost.exact_delta), **more}


def composition(rule: Rule, mechanisms: Sequence[Stated], cost: Loss) -> FieldDict:
    """The rule by which losses add up, with the parts of ε and δ of what does not add up simply.

    Input:  rule: of the plans; the mechanisms; what was charged
    """
    key_delta = sum((one.key_delta for one in mechanisms), Fraction(0))
    if not key_delta and not any(one.rho or one.epsilon or one.mu_squared for one in mechanisms):
        return {"rule": "epsilon" if cost.exact_rho is None else "rho"}
    pure = sum((one.epsilon or Fraction(0) for one in mechanisms), Fraction(0))
    left = {"epsilon": text(cost.exact_epsilon - pure), "delta": text(cost.exact_delta - key_delta)}
    if rule in (Rule.GAUSSIAN, Rule.BESIDE):
        return {"rule": rule.value, **left}
    if rule is Rule.RHO and cost.exact_rho is None:
        rho = sum((one.rho_up() for one in mechanisms), Fraction(0))
        order = text(zcdp_order(rho, cost.exact_delta - key_delta))
        return {"rule": rule.value, "order": order, "delta": left["delta"]}
    return {"rule": rule.value}
