"""Synthetic rows as a kind of answer: the rows, the noisy tables that they come from,
and how far the two are apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from html import escape
from itertools import combinations, pairwise
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from dpframe import engine
from dpframe.arrays import Array, Floats
from dpframe.budget import Terms
from dpframe.engine import Contingency, Kind, Table_co, as_kind, in_own_types
from dpframe.errors import DeltaRequired, InvalidArgument, UnknownColumn, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits
from dpframe.plan import COUNT, SYNTHETIC, Allotment, Synthesis, Tables, plain, render_html, titled
from dpframe.release.answer import Numbers
from dpframe.release.answer.joint_tables import summed
from dpframe.release.kinds.answers import AnswerKind
from dpframe.release.kinds.synthesis.fit import MeasuredTable, fitted, together
from dpframe.release.kinds.synthesis.rounds import (
    Exact,
    RoundSettings,
    TableRounds,
    measured_and_fitted,
)
from dpframe.release.kinds.synthesis.row_layout import RowLayout
from dpframe.release.pricing import Gaussian, Noise, NoisePlan, Price, Rule, check_shared
from dpframe.release.shown import Record, Release, Released, distances_chart, error_table, read_look
from dpframe.release.stored import Answer
from dpframe.theory.formulas.error import Attributes
from dpframe.theory.formulas.loss import gaussian_scale_rho, rho_within
from dpframe.usage import in_tuple, read_whole

_SHOWN = 8  # rows in a notebook
_WAYS = 3  # the largest number of columns of a table that the rows are held against
_PAIRS = 6  # the largest number of pairs of columns that a sentence lists
_WHY_NOT = (
    "No noisy table has such a pair, so the rows have only what other tables imply. Name the "
    "pairs that you need: workload=[('a', 'b'), ...] buys these first, unless together they have "
    "too many cells. Other tables are bought where they gain more than their noise: a larger ε, "
    "fewer columns, or fewer and wider bins leave enough for more."
)
MOST_ROWS = 20_000_000  # of a release whose number of rows was not typed
_HALF_NORMAL = math.sqrt(2 / math.pi)


def synthetic_answer(
    question: Synthesis, plan: NoisePlan, raw: Contingency
) -> tuple[pl.DataFrame, dict[str, Array]]:
    """The synthetic rows, and the noisy tables in one array with the columns of each, as bits.

    Input:  the question, its price, and its raw tables, which do not leave `measured_and_fitted`
    Bound:  the rows are a function of the noisy tables, and of random words that are independent of
            the data
    """
    (noise,) = plan.noises
    assert isinstance(noise.mechanism, TableRounds)
    bound = noise.total.sensitivity
    exact = Exact(raw.table, raw.fraction, int(bound.exact_l1), int(bound.l2_squared))
    sizes, price = question.tables.sizes, noise.mechanism.price
    named = [part for part in question.named if part in question.candidates]
    measured, fit = measured_and_fitted(
        exact,
        sizes,
        question.candidates,
        price,
        _public_numbers(),
        hints=question.hints,
        named=named,
    )
    del raw, exact
    number = min(round(fit.rows), MOST_ROWS) if question.rows is None else question.rows
    tables = together(measured)
    masks = [np.full(one.values.size, sum(1 << i for i in one.part), np.int64) for one in tables]
    return layout_of(question).drawn(fit, tables, number, _public_numbers()), {
        "columns": np.concatenate(masks),
        "value": np.concatenate([one.values.ravel() for one in tables]),
        "deviation": np.concatenate([np.full(one.values.size, one.deviation) for one in tables]),
    }


def layout_of(question: Synthesis) -> RowLayout:
    """The layout of the rows of a question."""
    return RowLayout(question.tables, question.columns, question.linked)


def _public_numbers() -> np.random.Generator:
    """Random numbers that are independent of the data and need not be secret."""
    return np.random.default_rng([int(word) for word in bits.random_words(2)])


class _Marginals(dict[tuple[str, ...], Release[Any]]):
    """Noisy tables by their columns. A missing one is answered with the columns that there are."""

    def __missing__(self, columns: object) -> NoReturn:
        names = in_tuple(columns)
        same = next((own for own in self if set(own) == set(names)), None)
        line = (
            f" Type out.marginals[{', '.join(map(repr, same))}{',' * (len(same) == 1)}]."
            if same
            else ""
        )
        raise UnknownColumn(
            f"marginals: no noisy table has the key {columns!r}.{line} Measured: "
            f"{', '.join(map(titled, self))}."
        )


@dataclass(frozen=True, eq=False, repr=False)
class NoisyTable(Release[Table_co]):
    """A noisy table, whose `table` has the 95% error and the number of
    synthetic rows beside each count.
    """

    _synthetic: pl.Series = field(kw_only=True)

    def _in_kind(self, kind: Kind) -> Any:
        errors = error_table(self._numbers, 0.05)["error"]
        return as_kind(super()._in_kind("polars").with_columns(errors, self._synthetic), kind)


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticRelease(Released[Table_co]):
    """Synthetic rows with their cost, and the noisy tables that they come from.

    `table` has the rows: columns and types of the protected table, in its kind. `marginals` has the
    noisy tables that were measured, by their columns; they are as private as the rows, and nearer
    to the data. Each is a `Release`, as in `out.marginals["city",].with_ci()`. `cost` is the loss
    that was charged once. `when` is the time (UTC) at which the noise was drawn.
    """

    _habits = SYNTHETIC

    _long: pl.DataFrame
    _parts: Mapping[str, Array]
    _layout: RowLayout

    @property
    def _tables(self) -> Tables:
        return self._layout.tables

    # The rows

    def _in_kind(self, kind: Kind) -> Any:
        """The rows as a kind of table; in the user's own types, if it is the user's kind."""
        return self._typed(self._long, kind)

    def _typed(self, rows: pl.DataFrame, kind: Kind) -> Any:
        table = as_kind(rows.select(rows.columns[: -len(self._tables.by)]), kind)
        if kind != self._kind:
            return table
        layout = self._layout
        types = {one.name: one.own for one in (*layout.ids, *layout.columns) if one.own is not None}
        listed = [one.name for one in layout.columns if not one.lows]
        keys = {name: [key for key in layout.level(name) if key is not None] for name in listed}
        return in_own_types(table, types, keys)

    def sample(self, rows: int, given: Fields | None = None) -> Any:
        """More synthetic rows from the same noisy tables, which costs nothing:
        `sample(1000, given={"sex": "F"})`.

        Input:  rows: how many. given: columns with the value that all rows have; the other columns
                go with it as in the model. A value of a column with bins stands for the rows of its
                bin
        Output: a table like `.table`, of other rows each time
        Bound:  post-processing of the noisy tables
        Errors: InvalidArgument, UnknownColumn
        """
        sentence = f"sample: rows is a whole number from 1 to {MOST_ROWS:,}, such as sample(1000)."
        rows = read_whole(rows, 1, MOST_ROWS, sentence)
        given = {} if given is None else given
        if not isinstance(given, Mapping):
            raise InvalidArgument(
                "sample: given= is a dict of columns with a value each, such as {'sex': 'F'}."
            )
        names = [column.name for column in self._layout.columns]
        if unknown := [name for name in given if name not in names]:
            raise UnknownColumn(
                f"sample: given= names {unknown[0]!r}, which is none of {', '.join(names)}."
            )
        fit = fitted(self._tables.sizes, self._measured, RoundSettings().last)
        drawn = self._layout.drawn(
            fit, self._measured, rows, _public_numbers(), {k: plain(v) for k, v in given.items()}
        )
        return self._typed(drawn, self._kind)

    # The noisy tables

    @property
    def marginals(self) -> dict[tuple[str, ...], Release[Table_co]]:
        """The noisy tables that were measured, by their columns: each a `Release` of counts.

        The `table` of each has keys, `count`, `error` (95%), and `synthetic`. `count` has a noise
        of its own in each cell (rows, may be negative). `synthetic` is the number of synthetic
        rows, scaled to the number of rows that the noisy tables have.
        """
        return _Marginals(
            (self._tables.names(one.part), self._marginal(one)) for one in self._shown
        )

    def _marginal(self, one: MeasuredTable) -> Release[Table_co]:
        levels = [self._tables.levels[i] for i in one.part]
        keys = pl.DataFrame({"": [0]})
        for name, level in zip(self._tables.names(one.part), levels, strict=True):
            texts = pl.DataFrame(
                {
                    name: pl.Series(
                        [None if key is None else str(key) for key in level], dtype=pl.String
                    )
                }
            )
            keys = keys.join(texts, how="cross", maintain_order="left_right")
        counts, output = pl.Series(COUNT, one.values.ravel()), self._tables.output(one.part)
        total = replace(output.total, fraction=0)  # its noise is told in rows
        own = Noise(Allotment((COUNT,), total, Fraction(1)), Gaussian(one.deviation))
        numbers = Numbers(
            keys.drop("").with_columns(counts) if one.part else pl.DataFrame(counts),
            self._tables.names(one.part),
            (replace(output, totals=((COUNT, total),)),),
            NoisePlan((own,), None, None, self.cost),
        )
        synthetic = pl.Series("synthetic", self._share(one.part).ravel() * self._rows)
        return NoisyTable(self._record, numbers, _synthetic=synthetic)

    @property
    def _shown(self) -> list[MeasuredTable]:
        """The measured tables that rows can be held against."""
        shown = set(self._layout.shown)
        return [one for one in self._measured if shown >= set(one.part)]

    @cached_property
    def _measured(self) -> list[MeasuredTable]:
        masks, values, deviations = (
            self._parts[name] for name in ("columns", "value", "deviation")
        )
        starts = [0, *(np.nonzero(np.diff(masks))[0] + 1), len(masks)]
        tables = []
        for start, end in pairwise(starts):
            part = tuple(i for i in range(len(self._tables.by)) if int(masks[start]) >> i & 1)
            shape = [self._tables.sizes[i] for i in part]
            tables.append(
                MeasuredTable(part, values[start:end].reshape(shape), float(deviations[start]))
            )
        return tables

    @cached_property
    def _codes(self) -> NDArray[np.int32]:
        return self._long.select(self._long.columns[-len(self._tables.by) :]).to_numpy()

    @cached_property
    def _rows(self) -> float:
        """The noisy number of rows, by all measured tables."""
        return max(float(self._estimated(())[0]), 1.0)

    def _share(self, part: Attributes) -> Floats:
        """The synthetic rows by some columns, as parts of all."""
        counts = Contingency(
            self._codes, np.ones(len(self._codes), np.int64), 0, self._tables.sizes
        ).table(part)
        return np.asarray(counts / max(len(self._codes), 1))

    def _estimated(self, part: Attributes) -> tuple[Any, float]:
        """The mean of the measured tables that have some columns, weighted
        by precision, and its deviation.
        """
        values, precision = np.zeros([self._tables.sizes[i] for i in part]), 0.0
        for one in self._measured:
            if set(part) <= set(one.part):
                added = math.prod(self._tables.sizes[i] for i in one.part if i not in part)
                weight = 1 / (one.deviation**2 * added)
                values = values + weight * summed(one.values, one.part, part)
                precision = precision + weight
        return (values / precision, precision**-0.5) if precision else (None, math.nan)

    # Errors

    @property
    def noise(self) -> Any:
        """One row per measured table: its columns, cells, and the deviation of
        the noise in each cell (rows).
        """
        rows = [
            (titled(self._tables.names(one.part)), one.values.size, one.deviation)
            for one in self._measured
        ]
        schema = {"table": pl.String, "cells": pl.Int64, "deviation": pl.Float64}
        return as_kind(pl.DataFrame(rows, schema=schema, orient="row"), self._kind)

    def accuracy(self) -> Any:
        """The distance of the rows from the noisy tables, for each table of one to
        three columns, the farthest first.

        Output: `table`; `columns`, how many; `distance`: total variation between the parts of the
                synthetic rows and the noisy table, null where no measured table has these columns;
                `noise`: the mean distance that the noise of the noisy table makes by itself. Where
                the two are alike, nobody can see an error of the rows
        """
        return as_kind(self._distances, self._kind)

    @cached_property
    def _distances(self) -> pl.DataFrame:
        rows = []
        places = self._layout.shown
        for part in (part for ways in range(1, _WAYS + 1) for part in combinations(places, ways)):
            values, deviation = self._estimated(part)
            distance = noise = None
            if values is not None:
                distance = float(np.abs(values / self._rows - self._share(part)).sum()) / 2
                noise = _HALF_NORMAL * deviation * values.size / self._rows / 2
            rows.append((titled(self._tables.names(part)), len(part), distance, noise))
        schema = {
            "table": pl.String,
            "columns": pl.Int64,
            "distance": pl.Float64,
            "noise": pl.Float64,
        }
        return pl.DataFrame(rows, schema=schema, orient="row").sort(
            "distance", descending=True, nulls_last=True, maintain_order=True
        )

    def _margins(self) -> list[tuple[str, str]]:
        return [
            (titled(self._tables.names(one.part)), f"± {Gaussian(one.deviation).error(0.05):,.4g}")
            for one in self._measured
        ]

    @property
    def _notes(self) -> list[str]:
        return [*super()._notes, *self._unmeasured]

    @property
    def _unmeasured(self) -> list[str]:
        """A sentence about pairs of columns that no noisy table has together, and
        why; none where there is no pair.
        """
        pairs = [
            pair for pair in combinations(self._layout.shown, 2) if not self._are_measured(pair)
        ]
        named = [" and ".join(self._tables.names(pair)) for pair in pairs[:_PAIRS]]
        if not named:
            return []
        more = (
            f"; {len(pairs) - len(named):,} more pairs are null in accuracy()"
            if len(pairs) > len(named)
            else ""
        )
        return [f"Relations between {', '.join(named)} are not in these rows{more}. {_WHY_NOT}"]

    def _are_measured(self, part: Attributes) -> bool:
        """Whether a noisy table has all of some columns."""
        return any(set(part) <= set(one.part) for one in self._measured)

    def _stated(self) -> FieldDict:
        """The distance of the rows from the noisy tables, in a
        sentence for each number of columns.
        """
        sentences = [
            "The rows are drawn from a model that was fitted to the noisy tables. Nothing else of "
            "the data is in them. Where no noisy table has some columns together, the rows do not "
            "show how these columns go together."
        ]
        sentences += self._unmeasured
        known = self._distances.drop_nulls("distance")
        for ways in range(1, _WAYS + 1):
            some = known.filter(pl.col("columns") == ways)
            if some.height:
                distances = some["distance"].to_numpy()
                noise = float(some["noise"].to_numpy().mean())
                tables = f"{some.height} table{'s' if some.height > 1 else ''}"
                sentences.append(
                    f"{tables} of {ways} column{'s' if ways > 1 else ''}: the rows are "
                    f"{distances.mean():.2%} from the noisy tables in total variation, at most "
                    f"{distances.max():.2%}; noise alone would make {noise:.2%}."
                )
        return {"post_processing": sentences}

    def plot(
        self, title: str | None = None, width: int | None = None, height: int | None = None
    ) -> Any:
        """The distances of `accuracy` as a chart (Altair):
        rows against noisy tables, beside what noise alone makes.

        Input:  title: replaces the title, "" for none; width, height: pixels
        Errors: UnsupportedOperation without the extra `charts`
        """
        return distances_chart(self._distances, read_look(title, width, height, None))

    def _repr_html_(self) -> str:
        first = self.to_polars().head(_SHOWN)
        table = render_html(first.columns, first.rows(), ".6g")
        return f"<div class='dpframe'>{table}<p>{escape(repr(self))}</p></div>"

    @property
    def _words(self) -> str:
        tables = ", ".join(titled(self._tables.names(one.part)) for one in self._shown)
        return (
            f"{len(self._codes):,} synthetic rows of {len(self._layout.columns)} columns, "
            f"from noisy tables: {tables}.\n\n"
            f"Released at {self.cost}. Read them: .table, .marginals, .accuracy(), .report()"
        )


# The kind of answer


class SyntheticAnswer(AnswerKind[Synthesis]):
    """Rows drawn from a model of noisy tables."""

    alone = "synthetic rows come from tables in rounds; release them by themselves."

    def validate(self, question: Synthesis) -> None:
        """Run the query of the one raw table on a table without rows."""
        engine.validate_contingency(question)

    def noise(self, question: Synthesis, price: Price) -> NoisePlan:
        """The ρ of all rounds of choices and noisy tables; at (ε, δ), the largest that implies it.

        Source: Bun, Steinke 2016, arXiv:1605.02065, for adaptive composition; Feldman, Zrnic 2021,
                arXiv:2008.11193, for prices that are chosen as the rounds go, within a fixed sum
        Errors: DeltaRequired; UnsupportedOperation for Laplace noise
        """
        check_shared(question, price.noise)
        if price.converts:
            raise UnsupportedOperation(
                "synthesize is paid from this budget in ρ: release(rho=0.01)."
            )
        rho, with_delta = price.amount, price.terms is Terms.EPSILON
        if with_delta:
            if price.delta == 0:
                raise DeltaRequired(
                    "synthesize: choices and tables in rounds need a δ: release(epsilon=..., "
                    "delta=1e-9)."
                )
            rho = rho_within(price.amount, price.delta)
        if not price.noise.normal:
            raise UnsupportedOperation(
                "synthesize: tables are measured with Gaussian noise: release(epsilon=..., "
                "delta=1e-9) without noise=, or release(rho=0.01) from a budget in ρ."
            )
        (allotment,) = question.allotments
        scale = gaussian_scale_rho(l2_squared=allotment.total.sensitivity.l2_squared, rho=rho)
        cost = price.loss(delta=with_delta)
        return NoisePlan(
            (Noise(allotment, TableRounds(scale, rho)),), None, None, cost, rule=Rule.RHO
        )

    def answer(self, question: Synthesis, plan: NoisePlan, salt: int) -> Answer:
        """The synthetic rows, and the noisy tables."""
        return Answer(*synthetic_answer(question, plan, engine.contingency(question, salt)))

    def released(
        self, question: Synthesis, plan: NoisePlan, answer: Answer, record: Record
    ) -> SyntheticRelease[Any]:
        """A `SyntheticRelease`."""
        return SyntheticRelease(record, answer.long, answer.parts, layout_of(question))
