"""Numbers of `dpframe.theory`, as lines that can be typed after `import dpframe.theory as t`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import dpframe.theory as t

_INTS = "t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance()"
_BOUNDED = "t.VectorDomain(t.AtomDomain(int, bounds=(0, 12))), t.SymmetricDistance()"
_FLOAT = "t.AtomDomain(float), t.AbsoluteDistance()"
_SIZED = "t.VectorDomain(t.AtomDomain(float, bounds=(0, 10)), size=40), {}()"
_MAP = "t.MapDomain(t.AtomDomain(str), t.AtomDomain(float)), {}()"

FIGURES: Mapping[str, Sequence[str]] = {
    "scales": (
        *(
            f"t.laplace_scale({l1}, {epsilon})"
            for l1 in (1, 5, "Fraction(1, 3)")
            for epsilon in (0.1, 1, 3)
        ),
        *(
            f"t.gaussian_scale({l2}, {epsilon}, {delta})"
            for l2 in (1, 7)
            for epsilon in (0.1, 1, 5)
            for delta in (1e-9, 1e-5)
        ),
        *(f"t.gaussian_scale_rho({l2}, {rho})" for l2 in (1, 4, 7) for rho in (0.001, 0.5)),
        *(
            f"t.threshold({delta}, {groups}, {family!r}, {scale}, step={step})"
            for delta in (1e-9, 1e-5)
            for groups in (1, 3)
            for family, scale, step in (
                ("laplace", 1.0, 1),
                ("laplace", 7.5, 1),
                ("laplace", 8.0, 4),
                ("gaussian", 3.0, 1),
                ("gaussian", 12.5, 2),
            )
        ),
    ),
    "losses": (
        *(f"t.gaussian_delta({epsilon}, {mu})" for epsilon in (0, 0.5, 3) for mu in (0.1, 1, 4)),
        *(f"t.gaussian_epsilon({delta}, {mu})" for delta in (1e-9, 1e-3) for mu in (0.1, 1, 4)),
        *(f"t.zcdp_to_delta({rho}, {epsilon})" for rho in (0.01, 0.5) for epsilon in (0.3, 2)),
        *(f"t.zcdp_to_epsilon({rho}, {delta})" for rho in (0.01, 0.5, 3) for delta in (1e-9, 1e-5)),
        *(f"t.laplace_delta({epsilon}, 1, {scale})" for epsilon in (0.1, 0.9) for scale in (1, 4)),
        *(
            f"t.discrete_laplace_delta({epsilon}, 2, {scale})"
            for epsilon in (0.1, 0.9)
            for scale in (1, 4)
        ),
        *(f"t.laplace_renyi({alpha}, 1, 3)" for alpha in (1.5, 2, 16)),
        *(f"t.discrete_laplace_renyi({alpha}, 1, 3)" for alpha in (1.5, 2, 16)),
        "t.pure_to_zcdp(1.0)",
        "t.pure_to_zcdp(0.1)",
    ),
    "composition": (
        f"t.compose([t.laplace({_FLOAT}, 2.0)] * 3).map(1)",
        f"t.compose([t.gaussian({_FLOAT}, 2.0), t.gaussian({_FLOAT}, 1.0)]).map(1)",
        f"t.parallel([t.count({_INTS}) >> t.laplace(t.AtomDomain(int), t.AbsoluteDistance(), "
        "scale=2)] * 10).map(1)",
        f"t.zcdp_to_approx(t.gaussian({_FLOAT}, scale=4.0)).map(1).epsilon(delta=1e-3)",
        f"t.zcdp_to_approx(t.gaussian({_FLOAT}, scale=4.0)).map(1).delta(epsilon=0.5)",
        f"t.fix_delta(t.zcdp_to_approx(t.gaussian({_FLOAT}, scale=4.0)), 1e-7).map(1)",
        f"t.pure_to_zcdp(t.laplace({_FLOAT}, scale=4.0)).map(1)",
        f"t.pure_to_approx(t.laplace({_FLOAT}, scale=4.0)).map(1)",
    ),
    "transformations": (
        f"t.count({_INTS}).map(3)",
        f"t.sum({_BOUNDED}).map(2)",
        f"t.sum({_BOUNDED})([12, 10, 8, 7])",
        "t.sum(t.VectorDomain(t.AtomDomain(float, bounds=(0, 12)), size=9), "
        "t.ChangeOneDistance()).map(2)",
        *(
            f"t.mean({_SIZED.format(metric)}).map(2)"
            for metric in ("t.SymmetricDistance", "t.ChangeOneDistance")
        ),
        *(
            f"t.variance({_SIZED.format(metric)}, ddof={ddof}).map(2)"
            for metric in ("t.SymmetricDistance", "t.ChangeOneDistance")
            for ddof in (0, 1)
        ),
        f"t.clamp({_INTS}, bounds=(0, 5)).map(3)",
        "t.clamp(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance(), bounds=(0, 5))([-3, "
        "4, 9])",
        "t.histogram(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance(), categories=['a', "
        "'b']).map(2)",
        f"t.histogram({_INTS}, bins=[0, 5, 9], output_metric=t.L2Distance()).map(2)",
        "t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance()).map(2)",
        "t.count_by(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance())(['a', 'b', 'a'])",
        "t.resize(t.VectorDomain(t.AtomDomain(int)), t.SymmetricDistance(), 10, 0).map(3)",
        "t.cast(t.VectorDomain(t.AtomDomain(str)), t.SymmetricDistance(), int, default=-1)(['3', "
        "'x', '4.7'])",
        "t.impute(t.VectorDomain(t.AtomDomain(float, nan=True)), t.SymmetricDistance(), "
        "1.0)([float('nan'), 2.0])",
    ),
    "measurements": (
        *(
            f"t.laplace({_FLOAT}, scale={scale}).map({d})"
            for scale in (0.1, 3, 25.0)
            for d in (0.3, 1, 12)
        ),
        *(
            f"t.gaussian({_FLOAT}, scale={scale}).map({d})"
            for scale in (0.1, 3, 25.0)
            for d in (0.3, 1, 12)
        ),
        f"t.laplace({_FLOAT}, scale=1.0, granularity=2.0**-10).map(1)",
        f"t.laplace({_FLOAT}, scale=5.0, output_measure=t.RenyiDivergence()).map(1)(4)",
        f"t.gaussian({_FLOAT}, scale=5.0, output_measure=t.RenyiDivergence()).map(1)(4)",
        f"t.laplace({_FLOAT}, scale=25.0)(100.0)",
        f"t.gaussian({_FLOAT}, scale=25.0)(100.0)",
        "t.laplace(t.VectorDomain(t.AtomDomain(int), size=3), t.L1Distance(), scale=25.0)([1, 2, "
        "3])",
        "t.gaussian(t.VectorDomain(t.AtomDomain(int), size=3), t.L2Distance(), scale=25.0)([1, "
        "2, 3])",
        "t.randomized_response(t.AtomDomain(bool), t.DiscreteDistance(), prob=0.75).map(1)",
        "t.randomized_response(prob=0.5, categories=['a', 'b', 'c']).map(1)",
        "[t.randomized_response(prob=0.5, categories=['a', 'b', 'c'])('a') for _ in range(9)]",
        "t.noisy_max(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), scale=3.0).map(1)",
        "t.noisy_max(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(monotonic=True), "
        "scale=3.0).map(1)",
        "[t.noisy_max(t.VectorDomain(t.AtomDomain(int)), t.LinfDistance(), scale=3.0)([1, 5, 3]) "
        "for _ in range(9)]",
        f"t.laplace_threshold({_MAP.format('t.L01InfDistance')}, scale=1.0, "
        "threshold=20.0).map((1, 1, 1))",
        f"t.gaussian_threshold({_MAP.format('t.L02InfDistance')}, scale=1.0, "
        "threshold=9.0).map((2, 2, 2))",
        f"t.laplace_threshold({_MAP.format('t.L01InfDistance')}, scale=1.0, "
        "threshold=20.0)({'a': 30.0, 'b': 2.0})",
    ),
    "errors and searches": (
        "t.binary_search(lambda x: x * x <= 200, bounds=(0, 100))",
        f"t.binary_search_param(lambda s: t.laplace({_FLOAT}, s), d_in=12, d_out=0.48)",
        "t.hockey_stick_divergence({'a': 0.5, 'b': 0.5}, {'a': 0.25, 'b': 0.75}, 0.1)",
        "t.max_divergence({'a': 0.5, 'b': 0.5}, {'a': 0.25, 'b': 0.75})",
        "t.renyi_divergence({'a': 0.5, 'b': 0.5}, {'a': 0.25, 'b': 0.75}, 2)",
        "t.empirical_sensitivity(lambda rows: sum(min(x, 5) for x in rows), [0, 3, 9], 3, "
        "progress=False)",
    ),
}


def value_of(line: str) -> Any:
    """What a line gives."""
    return eval(line, {"t": t, "Fraction": Fraction})
