"""Messages that show the line to type: for arguments in a wrong order,
and for names of other libraries.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

from dpframe.errors import WrongCall
from dpframe.theory.spaces import Domain, Metric

P = ParamSpec("P")
Made = TypeVar("Made")

_LINES = {
    "laplace": "scale=25.0",
    "gaussian": "scale=25.0",
    "laplace_threshold": "scale=1.0, threshold=20",
    "gaussian_threshold": "scale=1.0, threshold=20",
    "noisy_max": "scale=1.0",
    "noisy_top_k": "k=3, scale=1.0",
    "clamp": "bounds=(0, 100)",
    "cast": "T=float",
    "impute": "constant=0.0",
    "resize": "size=100, constant=0",
    "histogram": "categories=['a', 'b']",
    "count_by": "",
    "count": "",
    "sum": "",
    "mean": "",
    "variance": "",
}


def ordered(function: Callable[P, Made], line: str | None = None) -> Callable[P, Made]:
    """Wrap a constructor so that wrong arguments, or a domain or metric in the
    wrong place, raise `WrongCall`.

    >>> from dpframe.theory import AbsoluteDistance, AtomDomain, laplace
    >>> laplace(AbsoluteDistance(), AtomDomain(float), 1.0)
    Traceback (most recent call last):
    dpframe.errors.WrongCall: laplace: the input domain comes first, then the input metric. \
Type laplace(AtomDomain(float), AbsoluteDistance(), scale=25.0).
    """
    signature, name = inspect.signature(function), function.__name__
    arguments = _LINES.get(name, "") if line is None else line

    def example(domain: str, metric: str) -> str:
        return f"{name}({', '.join(filter(None, (domain, metric, arguments)))})"

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Made:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as problem:
            misfit: TypeError | None = problem
        else:
            misfit = None
        values = [*args, *kwargs.values()]
        domain = next((repr(v) for v in values if isinstance(v, Domain)), "domain")
        metric = next((repr(v) for v in values if isinstance(v, Metric)), "metric")
        if misfit is not None:
            raise WrongCall(f"{name}: {misfit}. Type {example(domain, metric)}.")
        places = {"input_domain": Domain, "input_metric": Metric}
        for place, value in bound.arguments.items():
            kind = places.get(place)
            strays = isinstance(value, Domain | Metric) and place not in (*places, "output_metric")
            if strays or (
                kind is not None and not isinstance(value, kind) and _elsewhere(kind, bound, place)
            ):
                raise WrongCall(
                    f"{name}: the input domain comes first, then the input metric. Type "
                    f"{example(domain, metric)}."
                )
        return function(*args, **kwargs)

    return checked


def _elsewhere(kind: type, bound: inspect.BoundArguments, place: str) -> bool:
    """Whether an argument of this kind was passed for another parameter."""
    return any(isinstance(v, kind) for p, v in bound.arguments.items() if p != place)


# Names of other libraries

_KNOWN = {
    "base_laplace": "laplace",
    "base_gaussian": "gaussian",
    "base_discrete_laplace": "laplace",
    "base_discrete_gaussian": "gaussian",
    "base_geometric": "laplace",
    "geometric": "laplace",
    "base_laplace_threshold": "laplace_threshold",
    "bounded_sum": "clamp(...) >> sum",
    "sized_bounded_sum": "clamp(...) >> sum",
    "bounded_mean": "clamp(...) >> mean",
    "sized_bounded_mean": "clamp(...) >> mean",
    "count_by_categories": "histogram",
    "count_distinct": "count_by",
    "find_bin": "histogram",
    "randomized_response_bool": "randomized_response",
    "report_noisy_max_gumbel": "noisy_max",
    "report_noisy_max": "noisy_max",
    "report_noisy_top_k": "noisy_top_k",
    "basic_composition": "compose",
    "composition": "compose",
    "adaptive_composition": "compose",
    "sequential_composition": "compose",
    "partition_distance": "parallel",
    "zcdp_to_approxdp": "zcdp_to_approx",
    "puredp_to_zcdp": "pure_to_zcdp",
    "puredp_to_approxdp": "pure_to_approx",
    "puredp_to_fixed_approxdp": "pure_to_approx",
    "impute_constant": "impute",
    "impute_uniform_float": "impute",
    "cast_default": "cast",
    "cast_inherent": "cast",
    "gaussian_noise": "gaussian",
    "laplace_noise": "laplace",
}


def unknown_name(name: str, names: Iterable[str]) -> str:
    """The message about a name that `dpframe.theory` does not have, with the name to type.

    >>> unknown_name("make_laplace", ["laplace"]).partition(";")[0]
    "dpframe.theory has no 'make_laplace'. Type laplace(domain, metric, scale=25.0)"
    """
    public = set(names)
    verb = name.removeprefix("make_").removeprefix("then_")
    replacement = _KNOWN.get(verb.lower())
    if replacement is None and verb in public:
        replacement = verb
    if replacement is not None and (replacement in public or ">>" in replacement):
        typed = (
            f"{replacement}(domain, metric, {_LINES[replacement]})"
            if _LINES.get(replacement)
            else replacement
        )
        return f"dpframe.theory has no {name!r}. Type {typed}; two parts chain with >>."
    flat = {word.lower().replace("_", ""): word for word in public}
    plain = verb.lower().replace("_", "")
    close = [flat[plain]] if plain in flat else difflib.get_close_matches(verb, public, 1)
    return f"dpframe.theory has no {name!r}." + (f" Did you mean {close[0]}?" if close else "")
