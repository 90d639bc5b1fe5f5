import numpy as np
import pytest
from flint import arb, ctx

from dpframe.noise import ball, bits, inversion


def laplace_cell(tilt):
    def distribution(_, x):
        slope = -ball(tilt)
        return (slope * x).expm1() / slope.expm1()

    return distribution


@pytest.mark.parametrize("tilt", [2.0**-31, 2.0**-27, -(2.0**-27)])
@pytest.mark.parametrize("exponent", [1, 10, 32])
@pytest.mark.parametrize("where", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_a_place_at_a_boundary_is_decided_by_more_bits(tilt, exponent, where, monkeypatch):
    boundary = min(max(1, int(where * 2**exponent)), 2**exponent)
    distribution = laplace_cell(tilt)
    with ctx.workprec(300):
        edge = distribution(0, (arb(boundary) - arb(0.5)) / 2**exponent)
        known = int((edge * 2**63).floor().unique_fmpz())
        rest = edge * 2**63 - known
    asked = []
    monkeypatch.setattr(
        inversion,
        "uniform_below",
        lambda *args, inner=inversion.uniform_below: asked.append(args) or inner(*args),
    )
    for more in (0, 1 << 63, (1 << 64) - 1):
        with bits.replay([more, 1 << 63, 1 << 63]):
            place = inversion.place(
                np.array([known << 1], np.uint64),
                np.asarray(exponent, np.intc),
                inversion.Inside(np.array([tilt]), 0.0, distribution),
                0.0,
                lambda _: ball(0.5),
            )
        with ctx.workprec(300):
            below = arb(more) / arb(2) ** 64 < rest
        assert place.tolist() == [boundary - 1 if below else boundary]
    assert len(asked) == 3


def test_the_stated_remainder_covers_the_true_inverse():
    # F⁻¹(u) = u - (tilt/2)·u(1-u) to within tilt² + 2·curve, for tilts and curves far larger than
    # any in use.
    with ctx.workprec(200):
        for tilt in (arb(2) ** -12, -(arb(2) ** -12), arb(2) ** -20):
            for curve in (arb(0), arb(2) ** -20):
                for step in range(1, 64):
                    u = arb(step) / 64
                    x = u - tilt / 2 * u * (1 - u)
                    reach = tilt**2 + 2 * curve

                    def mass(to, tilt=tilt, curve=curve):
                        if curve == 0:
                            return -(-tilt * to).expm1() / tilt
                        root, centre = curve.sqrt(), tilt / (2 * curve)
                        return (root * (to + centre)).erf() - (root * centre).erf()

                    assert mass(x - reach) / mass(arb(1)) < u < mass(x + reach) / mass(arb(1))
