"""Stored answers that are read by name alone, and releases that take the place of earlier ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

import numpy as np
import polars as pl

from dpframe.budget import Budget, Loss, Stored, is_text
from dpframe.engine import Kind, as_kind
from dpframe.errors import InvalidArgument, UnsupportedOperation
from dpframe.fields import FieldDict, Fields
from dpframe.release.shown import Exports, Release, Report, completed
from dpframe.release.stored import unpacked
from dpframe.usage import body_of, nearest

_MARGINS = (
    ("every column", "shown where the question is released again under this name, for free"),
)


class Correction(NamedTuple):
    """The name of an earlier release, and why another one takes its place."""

    name: str
    because: str


def read_correction(name: str | None, supersedes: object, because: object) -> Correction | None:
    """The correction that was typed. Errors: InvalidArgument."""
    if supersedes is None and because is None:
        return None
    if not is_text(supersedes) or not is_text(because) or name is None or name == supersedes:
        raise InvalidArgument(
            "A correction has a name of its own, the name that it takes the place of, and the "
            "reason: release(..., name='visits v2', supersedes='visits v1', because='the first "
            "file lacked a day')."
        )
    return Correction(str(supersedes), str(because))


def described_correction(
    plan: FieldDict | None, corrects: Correction | None, name: str | None, account: Any
) -> FieldDict | None:
    """The description of a release, with what it corrects. Errors: InvalidArgument if nothing."""
    if plan is None or corrects is None:
        return plan
    if not hasattr(account, "history") or corrects.name not in {
        line.name for line in account.history()
    }:
        raise InvalidArgument(
            f"supersedes={corrects.name!r}: nothing was released under this name from this budget, "
            f"so there is nothing to correct by {name!r}. Nothing was spent."
        )
    return {
        **plan,
        "supersedes": {"": f"{corrects.name!r}, because {corrects.because}", **corrects._asdict()},
    }


def said_of(corrects: Correction | None) -> dict[str, str]:
    """Words of a privacy statement about a correction."""
    if corrects is None:
        return {}
    return {"corrects": f"Takes the place of {corrects.name!r}: {corrects.because}"}


class Shown(TypedDict, total=False):
    """The form of a stored table: rows of missing columns, and decimals in files."""

    missing: Mapping[str, Sequence[int]]
    decimals: Mapping[str, int]


def shown_of(release: object) -> Shown:
    """The form that is kept with an answer; {} for kinds that hide no number.

    Who reads it by name alone has neither the question nor the noise that this follows from. It
    follows from released numbers, so keeping it tells nothing more.
    """
    if not isinstance(release, Release):
        return {}
    hidden = release._numbers.empty.items()
    missing = {name: np.flatnonzero(cells).tolist() for name, cells in hidden if cells.any()}
    return {"missing": missing, "decimals": dict(release._decimals)}


class KeptAnswer(Exports):
    """A stored answer: its table, the time at which it was stored, and its privacy statement."""

    def __init__(
        self,
        name: str,
        long: pl.DataFrame,
        stored: Stored,
        cost: Loss,
        statement: Fields,
        shown: Shown,
        question: int,
    ) -> None:
        self.name, self.when, self.cost = name, stored.when, cost
        self._filed, self._question = stored.statement.get("certificate"), question
        self._long = _without(long, shown.get("missing", {}))
        self._statement, self._shown = statement, shown

    @property
    def table(self) -> pl.DataFrame:
        """The released table, by group; numbers that noise hides are missing: see `fill`."""
        return self._long

    def _in_kind(self, kind: Kind) -> Any:
        return as_kind(self._long, kind)

    @property
    def _decimals(self) -> Mapping[str, int]:
        return self._shown.get("decimals", {})

    def report(self) -> Report:
        """The privacy statement."""
        return Report(self._statement, _MARGINS)

    @property
    def _certified(self) -> bool:
        return self._filed is not None

    def certificate(self) -> FieldDict:
        """What the claim rests on: see `Release.certificate`. Errors: UnsupportedOperation."""
        if self._filed is None:
            raise UnsupportedOperation(
                "certificate(): this release was stored by a version that wrote none."
            )
        said = {**self._statement, "post_processing": []}
        return completed(
            self.to_csv(), self._filed, said, drawn=said["drawn"], question=self._question
        )

    def _advice(self, name: str) -> str:
        if not name.startswith("_") and hasattr(Release, name):
            return (
                f" It needs the question: ask it again, release(..., name={self.name!r}), which is "
                "free."
            )
        return super()._advice(name)

    @property
    def _words(self) -> str:
        return (
            f"{self._long}\n\n{self.name!r}, stored {self.when:%Y-%m-%d %H:%M} UTC at {self.cost}."
        )

    @property
    def _notes(self) -> Sequence[str]:
        """Notes of a test, a correction or a later release about it."""
        return [
            self._statement[key]
            for key in ("test", "corrects", "superseded")
            if key in self._statement
        ]


@body_of(Budget.answer)
def answer(budget: Budget, name: object) -> Any:
    """The stored answer of a name; see `Budget.answer`."""
    receipt = budget.kept(name) if isinstance(name, str) else None
    kept = None if receipt is None else receipt.stored
    if receipt is None or kept is None:
        names = sorted({line.name for line in budget.entries() if line.is_release and line.name})
        raise InvalidArgument(
            f"budget.answer({name!r}): no answer is stored under this name; see budget.history()."
            f"{nearest(str(name), names)}"
        )
    if "releases" not in kept.statement:
        raise UnsupportedOperation(
            f"budget.answer({name!r}): this is a part of a larger answer. Reopen its series, "
            "budget.series('...'), or ask again under its name, which is free."
        )
    later = [line.name for line in budget.history() if line.supersedes == name]
    note = {"superseded": f"{later[-1]!r} has taken the place of this release."} if later else {}
    statements = kept.statement["releases"]
    # earlier versions kept none
    shown: Sequence[Shown] = kept.statement.get("shown", [{}] * len(statements))
    answers = [
        KeptAnswer(str(name), one.long, kept, receipt.loss, {**statement, **note}, how, question)
        for question, (one, statement, how) in enumerate(
            zip(unpacked(kept.data), statements, shown, strict=True)
        )
    ]
    return answers[0] if len(answers) == 1 else answers


def _without(long: pl.DataFrame, missing: Mapping[str, Sequence[int]]) -> pl.DataFrame:
    """A stored table without the numbers that noise hides."""
    row = pl.int_range(pl.len())
    return long.with_columns(
        pl.when(~row.is_in(list(rows))).then(pl.col(name)).alias(name)
        for name, rows in missing.items()
    )
