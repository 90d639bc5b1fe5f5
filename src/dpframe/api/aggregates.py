"""Arguments of `agg(...)`: statistics of dpframe, aggregates of Polars, and
the names that pandas gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

import pandas as pd
import polars as pl

from dpframe.api.arguments import public_schema, read_name
from dpframe.api.statistics import choices, counts, moments, pairs
from dpframe.errors import InvalidArgument, MissingBounds
from dpframe.plan import Aggregate, Aggregates, Expr, PolarsAggregate, Schema
from dpframe.plan import read_aggregates as of_polars
from dpframe.plan.expressions.polars_aggregates import BOUNDED
from dpframe.plan.nodes import text
from dpframe.plan.statistics import Named, Several
from dpframe.plan.steps import Step
from dpframe.plan.steps.rewrites import WithColumns
from dpframe.usage import nearest

# of pandas and Polars, and the statistic of ours
_WORDS: Mapping[str, Callable[..., Aggregate]] = {
    **{"count": counts.count, "nunique": counts.n_unique, "n_unique": counts.n_unique},
    **{name: getattr(moments, name) for name in ("sum", "mean", "std", "var", "skew", "kurtosis")},
    **{name: getattr(choices, name) for name in ("min", "median", "max", "quantile", "mode")},
    **{name: lambda _: counts.count() for name in ("size", "len")},
}


def read_aggregates(
    step: Step,
    verb: str,
    unnamed: Iterable[object],
    named: Mapping[str, object],
    by: Collection[str] = (),
) -> tuple[Step, Aggregates]:
    """The statistics of a call by name, and the step that writes the columns which Polars'
    aggregates compute first.

    Input:  unnamed: statistics, aggregates of Polars, or one dict of columns and words as in
            pandas; named: those with a keyword, and pairs of a column and a word; by: keys of
            groups, which no selector means
    Errors: InvalidArgument, UnsupportedOperation
    """
    schema = public_schema(step.table.columns, by)
    typed = [pair for value in unnamed for pair in _unnamed(value, verb, schema)] + list(
        named.items()
    )
    if len({name for name, _ in typed}) < len(typed):
        raise InvalidArgument(
            f"{verb}: two aggregates have one name; give one of them another: .alias('y')."
        )
    if not typed:
        raise InvalidArgument(f"{verb}: name at least one aggregate, such as {verb}(n=dp.count()).")
    asked = []
    for name, value in typed:
        if isinstance(value, pl.Expr):
            (value,) = of_polars(value.alias(name), schema)
        if isinstance(value, PolarsAggregate):
            step, value = _ours(step, value)
        asked.append((name, _aggregate(name, value, verb)))
    return step, tuple(asked)


def _unnamed(value: object, verb: str, schema: Schema) -> Iterator[tuple[str, object]]:
    """The names and statistics of an argument without a keyword."""
    match value:
        case pl.Expr():
            yield from ((one.name, one) for one in of_polars(value, schema))
        case Named():
            yield value.name, value.aggregate
        case Aggregate():
            one = value.parts[0][1] if isinstance(value, Several) else value
            yield getattr(one, "column", None) or value.typed.partition("(")[0], value
        case Mapping():
            for column, words in value.items():
                if not isinstance(column, str):
                    raise InvalidArgument(
                        f"{verb}: a dict is from columns to what is asked of them: {verb}({{'x': "
                        "['max', 'mean']})."
                    )
                several = isinstance(words, list | tuple)
                for word in words if several else [words]:
                    yield f"{column}_{word}" if several else column, (column, word)
        case tuple() if (
            len(value) == 2 and value[1] in list(_WORDS) and value[0] not in list(_WORDS)
        ):
            column, word = value
            raise InvalidArgument(
                f"{verb}: name it as pandas does: {verb}({column}_{word}=({column!r}, {word!r}))."
            )
        case list() | tuple():
            for one in value:
                yield from _unnamed(one, verb, schema)
        case str() if value in _WORDS:
            raise InvalidArgument(
                f"{verb}: say of which columns, {verb}({{'x': [{value!r}]}}), or {value}(['x', "
                "'y'])."
            )
        case str():
            raise InvalidArgument(
                f"{verb}: say what of {value!r}, and name it as pandas does: "
                f"{verb}(mean_of_it=({value!r}, 'mean')), or {verb}({{{value!r}: ['mean']}})."
            )
        case _:
            raise InvalidArgument(
                f"{verb}: name each aggregate, as in {verb}(n=dp.count(), m=dp.mean('x', "
                "bounds=(0, 1)))."
            )


def _ours(step: Step, asked: PolarsAggregate) -> tuple[Step, Aggregate]:
    """The statistic of an aggregate of Polars; what it computes of a row is
    written to a column of its own first.
    """
    options = dict(asked.options) | ({} if asked.bounds is None else {"bounds": asked.bounds})
    if asked.verb in ("corr", "cov"):
        return step, getattr(pairs, asked.verb)(**options)
    if asked.of is None:
        return step, counts.count()
    if asked.of._node.column is not None:
        return step, _WORDS[asked.verb](asked.of._node.column, **options)
    column, words = text(asked.of._node, short=True), step.table.columns
    while column in words:
        column += "'"
    step = WithColumns(step, ((column, Expr(asked.of._node)),))
    if (
        asked.verb not in BOUNDED
        or asked.bounds is not None
        or step.table.columns[column].domain.bounds is not None
    ):
        return step, _WORDS[asked.verb](column, **options)
    if asked.column is not None and asked.column in words:  # a filter changes no value
        options["bounds"] = words[asked.column].defaults.bounds
    if options.get("bounds") is None:
        raise MissingBounds(
            f"{asked.verb} of {column}: one value of it could be anything, so no finite noise "
            "hides it. Put the range just before it, with limits you know without the data: "
            f".clip(0, 100).{asked.verb}()."
        )
    return step, _WORDS[asked.verb](column, **options)


def _aggregate(name: str, value: object, verb: str) -> Aggregate:
    match value:
        case Named():
            value = value.aggregate
        case pd.NamedAgg():
            value = value.column, value.aggfunc
    if (
        isinstance(value, tuple)
        and len(value) == 2
        and (isinstance(value[1], str) or callable(value[1]))
    ):
        column, word = value  # of a function, such as np.mean, its name is the word
        word = word if isinstance(word, str) else getattr(word, "__name__", "a function")
        if word not in _WORDS:
            raise InvalidArgument(
                f"{verb}: there is no statistic {word!r}.{nearest(word, _WORDS)} There are "
                f"{', '.join(_WORDS)}."
            )
        value = _WORDS[word](read_name(column, verb))
    if isinstance(value, Aggregate):
        return value
    if name in ("epsilon", "delta", "rho", "share"):
        raise InvalidArgument(
            f"{verb}: the price is said at the release: {verb}(...).release({name}=...)."
        )
    raise InvalidArgument(
        f"{verb}({name}=...): give an aggregate, such as dp.count() or dp.mean('spend', bounds=(0, "
        "100))."
    )
