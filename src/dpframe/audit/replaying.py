"""A release on two neighbouring tables, answer by answer:
what each noise and each choice was about, and its loss.

A release is a chain of private answers (noisy histograms, noisy totals, choices), each of which may
depend on the rows and on the answers before it; the rest follows from these answers. Here the
answers are not drawn but given beforehand, the same for two neighbouring tables. Then

- all that can be seen must be the same, to the last letter: numbers, words, charges. What differs
  is a leak;
- the privacy loss of exactly this chain of answers is known: what each answer adds is bounded by
  how far its exact numbers are apart in the two tables and by the scale of its noise, and these add
  up, as in any adaptive composition. Held against what was charged, nothing is left to chance.

Source: Dwork, Rothblum, Vadhan 2010, doi:10.1109/FOCS.2010.12, for adaptive composition; the loss
        of each answer is in
`Replayed.epsilon` and `Replayed.rho`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from dpframe import noise as sources
from dpframe.budget import Loss, read_delta, read_epsilon
from dpframe.engine import ONE
from dpframe.errors import InvalidArgument
from dpframe.noise import bits, contrasts
from dpframe.plan.columns import Limits
from dpframe.release.answer import selection
from dpframe.release.auto import choice as auto
from dpframe.release.auto import noisy_histograms
from dpframe.release.auto import value_histograms as values
from dpframe.release.auto.error_model import Expected, Judged
from dpframe.release.kinds.marginals import draw as marginals
from dpframe.release.pricing import (
    NoiseKind,
    choice_mechanisms,
    joint_noise,
    mechanisms,
    shared_noise,
)
from dpframe.release.shown import Exports, Released
from dpframe.theory.formulas.loss import loss as privacy

Array = np.ndarray[Any, np.dtype[Any]]
chosen_in_list = selection.in_list
CHOICES = ("permute_and_flip", "exponential")
NORMAL = ("gaussian", "contrasts", "elliptic")


class UnlikeError(Exception):
    """Two answers that cannot be the same mechanism's."""


@dataclass(frozen=True)
class Replayed:
    """One mechanism's answer: of which stage, by which noise of which scale, and
    the exact numbers it was made of.

    Of a choice they are the scores of the candidates, by group, and `scale` is 1 / rate. Of an
    interaction of marginals they are contrasts, and `sizes` says of how many keys. Of elliptic
    noise `scale` is the deviation of each number's own noise and `shared` that of the noise that
    all numbers share. Where a choice is among many candidates, `exact` has a score for each run of
    them, and `firsts` the first candidate of each run, which differ between tables.
    """

    stage: str
    family: str
    scale: float
    exact: Array
    sizes: tuple[int, ...] = ()
    shared: float = 0.0
    firsts: Array | None = None

    @property
    def chooses(self) -> bool:
        """Whether limits or bounds are chosen by it, in the first stage."""
        return self.stage == "histogram"

    @property
    def law(self) -> tuple[object, ...]:
        """The law of the noise, which must not depend on rows."""
        return self.stage, self.family, self.scale, self.shared, self.sizes

    def moved(self, other: Replayed) -> Array:
        """Distance of the numbers, in scales: of each number, or
        the range of each group's scores.
        """
        if self.law != other.law:
            raise UnlikeError(f"noise of {self.law} is beside noise of {other.law}")
        if self.firsts is not None and other.firsts is not None:
            both = [np.union1d(*pair) for pair in zip(self.firsts, other.firsts, strict=True)]
            pairs = zip(self._at(both), other._at(both), strict=True)
            return np.array(
                [np.ptp((one - two).astype(np.float64)) / self.scale for one, two in pairs]
            )
        if self.exact.shape != other.exact.shape:
            raise UnlikeError(
                f"{self.exact.size} numbers are beside {other.exact.size}: the tables have other "
                "groups"
            )
        here, there = (np.atleast_1d(one.exact).astype(object) for one in (self, other))
        apart = (here - there).astype(np.float64) / self.scale
        if self.family in CHOICES:  # what all scores move by together moves no choice
            return np.asarray(apart.max(axis=-1) - apart.min(axis=-1))
        most, least = (np.max(one, axis=apart.ndim - 1, initial=0) for one in (apart, -apart))
        match self.family:
            case "k-norm":  # the largest rise and the largest fall of a number, added
                return np.array(
                    [max(0.0, np.max(apart, initial=0)) + max(0.0, np.max(-apart, initial=0))]
                )
            case "window":  # of each group by itself
                return np.asarray(most + least)
            case "cube":
                return np.asarray(np.maximum(most, least))
            case "elliptic":
                return self._elliptic(np.ravel(apart))
            case "contrasts":
                return self._whitened(np.ravel(apart))
        return np.ravel(np.abs(apart))

    def _at(self, candidates: Sequence[Array]) -> list[Array]:
        """Of each group the scores of some candidates, each that of the run which it is in."""
        assert self.firsts is not None
        groups = zip(self.exact.astype(object), self.firsts, candidates, strict=True)
        return [
            scores[np.searchsorted(first, these, side="right") - 1]
            for scores, first, these in groups
        ]

    def _whitened(self, apart: Array) -> Array:
        """Contrasts D·v with the noise D·g of normals g:
        as long as the projection of v that D sees.
        """
        cells = int(np.prod(self.sizes))
        ones = np.eye(cells, dtype=np.int64).reshape(cells, *self.sizes)
        made = np.array([np.ravel(contrasts(one)) for one in ones], np.float64).T
        return np.asarray(np.linalg.solve(np.linalg.cholesky(made @ made.T), apart))

    def _elliptic(self, apart: Array) -> Array:
        """√(v'·S⁻¹·v) for the covariance S of the noise:
        1 for each number, and the shared variance everywhere.
        """
        covariance = np.eye(len(apart)) + (self.shared / self.scale) ** 2
        return np.array([np.sqrt(apart @ np.linalg.solve(covariance, apart))])

    def epsilon(self, other: Replayed) -> float:
        """The pure loss. Laplace: |Δ| / scale of each number.
        A choice: rate times the range of Δ, of each group.
        """
        if self.family in NORMAL:
            raise UnlikeError("normal noise has no pure loss")
        return float(self.moved(other).sum())

    def rho(self, other: Replayed) -> float:
        """The concentrated loss of each number or group, added: see `theory.formulas.loss.loss`."""
        laws: dict[str, Callable[[float], float]] = {
            "laplace": lambda x: x + np.exp(-x) - 1,
            "discrete_laplace": lambda x: x * np.tanh(x / 2),
            "gaussian": lambda x: x**2 / 2,
            "contrasts": lambda x: x**2 / 2,
            "elliptic": lambda x: x**2 / 2,
            **dict.fromkeys(("k-norm", "window", "cube"), lambda x: x * np.tanh(x / 2)),
            "exponential": lambda x: x**2 / 8,
            "permute_and_flip": lambda x: privacy.pure_to_zcdp(x) if x else 0.0,
        }
        law = laws[self.family]
        return float(sum(law(x) for x in np.ravel(self.moved(other)).tolist()))


@dataclass
class Transcript:
    """The answers of a release, in order.
    `firsts`: of the runs of candidates that are chosen among now.
    """

    seed: int
    answers: list[Replayed] = field(default_factory=list)
    firsts: Array | None = None

    def generator(self) -> np.random.Generator:
        """Of the next answer: the same after as many answers, whatever they were about."""
        return np.random.default_rng([self.seed, len(self.answers)])


class _Given:
    """In place of noise: added to exact numbers it notes them, and
    gives what was settled beforehand.
    """

    __array_ufunc__ = None  # so that `numbers + given` asks here
    dtype = np.dtype(np.int64)

    def __init__(
        self,
        said: Transcript,
        stage: str,
        family: str,
        scale: float,
        sizes: Sequence[int] = (),
        shared: float = 0.0,
        draws: int | None = None,
    ) -> None:
        self._said, self._about, self._draws = (
            said,
            (stage, family, float(scale), tuple(sizes), shared),
            draws,
        )

    def __getitem__(self, _: slice) -> _Given:
        return self

    def __len__(self) -> int:
        return 0  # nothing in it is large

    def astype(self, _: object, *, copy: bool = True) -> _Given:
        return self

    def __radd__(self, exact: Any) -> Array:
        exact, rng = np.asarray(exact), self._said.generator()
        if self._draws is not None and self._draws != exact.size:
            raise UnlikeError(f"{self._draws} draws of noise were added to {exact.size} numbers")
        stage, family, scale, sizes, shared = self._about
        self._said.answers.append(Replayed(stage, family, scale, exact.copy(), sizes, shared))
        # a heap of people anywhere, so that limits and bounds of all sizes are chosen
        if stage == "histogram":
            at = np.arange(len(exact)) - rng.integers(0, len(exact))
            return np.where((at >= 0) & (at < 5), rng.integers(0, 99 * ONE), 0)
        return np.asarray(rng.integers(-100, 1000, exact.shape))


def _settled_limits(said: Transcript) -> Any:
    """In place of the choice of limits, which takes a second:
    any limits there are, as the answers so far settle.
    """

    def best(ask: Any, rest: Any, people: Any) -> Any:
        rng = said.generator()
        rows, groups, most = (int(rng.choice([1, 2, 3, 8, 60])) for _ in range(3))
        limits = [Limits(rows), Limits(rows), Limits(max_groups=groups, max_rows_per_group=most)]
        limits += [Limits(rows, groups, most), Limits(rows, groups)]
        made = limits[rng.integers(len(limits) if ask.by else 2)]
        made = dataclasses.replace(made.and_also(ask.typed_limits), auto=None)
        model = Expected(ask, people, rest)
        apart = [name for names in auto._columns_apart(ask) for name in names if rng.integers(2)]
        own = {name: Limits(int(rng.choice([1, 2, 8, 60]))) for name in apart}
        kinds = rest.plans(ask.with_limits(made)).keys()
        noise = NoiseKind.GAUSSIAN if NoiseKind.GAUSSIAN in kinds else NoiseKind.LAPLACE
        errors = dict.fromkeys((output.name for output in ask.outputs), 1.0)
        return Judged(made, own, noise, np.ones(1), errors), model.left(made, model.kept(made))

    return best


def _given_noise(said: Transcript, stage: str, family: str) -> Any:
    """In place of a sampler: noise that makes of a number the answer that the seed settles."""
    return lambda scale, size=1: _Given(said, stage, family, scale, draws=size)


def _given_choice(said: Transcript, family: str) -> Any:
    """In place of a choice: a candidate that the seed settles; the scores are noted."""

    def choose(scores: Array, rate: Any, *copies: Array) -> Array:
        rng = said.generator()
        said.answers.append(
            Replayed("answer", family, float(1 / rate), np.array(scores), firsts=said.firsts)
        )
        # In a list, runs without candidates are there too, and none is chosen; `_given_in_list`
        # says what is.
        return copies[0].argmax(axis=1) if copies else rng.integers(0, scores.shape[1], len(scores))

    return choose


def _given_in_list(said: Transcript) -> Any:
    """In place of a choice among many candidates: any place of their public
    list; the release's own is noted.
    """

    def in_list(total: Any, first: Array, *asked: Any) -> Array:
        said.firsts, rng, candidates = np.array(first), said.generator(), total.candidates
        chosen_in_list(total, first, *asked)
        said.firsts, none = None, np.zeros(len(first), np.int64)
        end = none + candidates.count
        return np.asarray(
            candidates.picked(none, end, rng.integers(0, candidates.listed(none, end)))
        )

    return in_list


def _given_instead(said: Transcript) -> list[tuple[Any, str, Any]]:
    """Samplers of a release by their module and name, and what is called in place of each."""

    def joint(family: str) -> Any:
        return lambda scale, cells, size: _Given(said, "answer", family, scale, draws=cells * size)

    laplace, whole, normal = (
        _given_noise(said, "answer", law) for law in ("laplace", "discrete_laplace", "gaussian")
    )
    flip, exponential = _given_choice(said, "permute_and_flip"), _given_choice(said, "exponential")
    return [
        (noisy_histograms, "rounded_laplace", _given_noise(said, "histogram", "laplace")),
        *((of, "rounded_laplace", laplace) for of in (mechanisms, sources)),
        *((of, "discrete_laplace", whole) for of in (mechanisms, sources)),
        *((of, "rounded_gaussian", normal) for of in (mechanisms, sources)),
        *((of, "permute_and_flip", flip) for of in (choice_mechanisms, sources)),
        *((of, "exponential_choice", exponential) for of in (choice_mechanisms, sources)),
        (
            shared_noise,
            "shared_gaussian",
            lambda own, both, _: _Given(said, "answer", "elliptic", own, shared=both),
        ),
        (
            shared_noise,
            "window_noise",
            lambda scale, cells: _Given(said, "answer", "k-norm", scale),
        ),
        (joint_noise, "window_noises", joint("window")),
        (joint_noise, "cube_noises", joint("cube")),
        (
            marginals,
            "rounded_contrasts",
            lambda scale, sizes: _Given(said, "answer", "contrasts", scale, sizes),
        ),
        (bits, "random_salt", lambda: f"{said.seed:032x}"),  # of partitions
        (selection, "in_list", _given_in_list(said)),
    ]


@contextlib.contextmanager
def given(seed: int, *, choosing: bool = False) -> Iterator[Transcript]:
    """Answers of releases in this block are settled by the seed;
    what they would have been about is noted.

    Unless they are `choosing`, limits are settled too: whatever limits follow from the answers must
    be private.
    """
    said, words = Transcript(seed), np.random.default_rng([seed])
    changes = _given_instead(said)
    if not choosing:
        changes += [
            (auto, "_best", _settled_limits(said)),
            (
                values,
                "draw_curves",
                lambda counts, _, number, **__: np.tile(counts.clip(0), (number, 1)),
            ),
            (values, "nobody_there", lambda counts, _: float(counts.sum() <= 0)),
        ]
    with contextlib.ExitStack() as stack:
        for of, name, instead in changes:
            stack.enter_context(mock.patch.object(of, name, instead))
        # salts
        stack.enter_context(
            bits.substitute(lambda count: words.integers(0, 2**64, count, dtype=np.uint64))
        )
        yield said


def loss(one: Transcript, other: Transcript, terms: str, delta: float) -> float:
    """The difference between two tables in these answers: in ε at a δ, or in ρ.

    Bound:  in ρ all answers add up, and so do pure losses in ε. Gaussian answers together have μ² =
            Σ (Δ/σ)², and ε by their profile at δ, on top of what is pure. With choices by the
            exponential mechanism the second stage is one mechanism of ρ, converted at δ. The first
            stage is pure
    """
    if len(one.answers) != len(other.answers):
        raise UnlikeError(f"{len(one.answers)} answers are beside {len(other.answers)}")
    pairs = list(zip(one.answers, other.answers, strict=True))
    if terms == "rho":
        return sum(a.rho(b) for a, b in pairs)
    first = sum(a.epsilon(b) for a, b in pairs if a.chooses)
    second = [(a, b) for a, b in pairs if not a.chooses]
    normal = [(a, b) for a, b in second if a.family in NORMAL]
    if any(a.family == "exponential" for a, _ in second):
        rho = sum(a.rho(b) for a, b in second)
        return first + (privacy.zcdp_to_epsilon(rho, delta) if rho else 0.0)
    pure = sum(a.epsilon(b) for a, b in second if a.family not in NORMAL)
    mu = float(np.sqrt(sum((a.moved(b) ** 2).sum() for a, b in normal)))
    return first + pure + (privacy.gaussian_epsilon(delta, mu) if mu else 0.0)


@dataclass(frozen=True)
class Replay:
    """A release on two neighbouring tables, with the same noisy answers given to both.

    `loss` is the exact loss of these answers and `charged` what was charged, both in ε or both in
    ρ. `told` says what else could be seen to differ; it is empty where nothing could. `private`
    says whether the answers cost no more than was charged and nothing else was told. `answers` is
    how many there were.
    """

    loss: float
    charged: float
    told: str
    answers: int

    @property
    def private(self) -> bool:
        """Whether the loss is within the charge, and nothing else is told."""
        return not self.told and self.loss <= self.charged * (1 + 1e-9)


def replay(release: Callable[[Any], Any], table: Any, neighbour: Any, *, seed: int = 0) -> Replay:
    """Run a release on two neighbouring tables with the same noisy answers, and
    compute the exact loss of these.

    The answers are settled by the seed, the same for both tables. What they would have been about
    is noted. So what can be seen must be the same to the last letter, and the loss of exactly these
    answers is known: nothing is left to chance, and one pair of tables on which a release costs
    more than it says is a counterexample.

    Parameters
    ----------
    release : function
        Takes a table, releases it and returns what anybody may see: a release, or a list of them.
        Anything else is compared by its text; it has `cost`, a pair (ε, δ), and draws its noise
        with `dpframe.noise`.
    table, neighbour : tables
        Made-up tables that differ in the rows of one unit, of any kind that `release` takes; see
        `neighbours`.
    seed : int
        Other seeds give other answers.

    Returns
    -------
    Replay
        The loss, the charge, and what else was told. Groups that are found in the data are shown
        with a probability that δ pays for, which no replay counts: list keys.

    Raises
    ------
    InvalidArgument
        For a result without a cost.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": [1, 1, 2]})
    >>> def release(table):
    ...     return (
    ...         table.dp(unit="user", budget=dp.Budget(epsilon=1))
    ...         .count(max_rows=2)
    ...         .release(epsilon=0.5)
    ...     )
    >>> found = dp.audit.replay(release, visits, visits.filter(pl.col("user") != 1))
    >>> found.loss, found.charged, found.private
    (0.5, 0.5, True)
    """
    try:
        (here, one), (there, other) = (_run(release, rows, seed) for rows in (table, neighbour))
        (shown, price), (also, paid) = _seen(here), _seen(there)
        used = loss(one, other, price[0], price[2])
    except UnlikeError as error:
        return Replay(np.inf, 0.0, str(error), 0)
    told = next((f"{a!r} beside {b!r}" for a, b in zip(shown, also, strict=False) if a != b), "")
    told = told or (
        "other charges" if price != paid else "" if len(shown) == len(also) else "other results"
    )
    return Replay(used, price[1], told, len(one.answers))


def assert_private(
    release: Callable[[Any], Any], tables: Iterable[tuple[Any, Any]], *, seeds: int = 3
) -> None:
    """Fail where a release costs more than it says on two neighbouring tables, or
    tells something beside its answers.

    Parameters
    ----------
    release : function
        As in `replay`.
    tables : iterable of pairs
        Pairs of neighbouring tables, such as
        `[(table, other) for other in dp.audit.neighbours(table, "user")]`.
    seeds : int
        How many transcripts are tried for each pair.

    Raises
    ------
    AssertionError
        With the pair, the loss and the charge, or with what was told.

    Examples
    --------
    >>> import polars as pl, dpframe as dp
    >>> visits = pl.DataFrame({"user": [1, 1, 2]})
    >>> def release(table):
    ...     return (
    ...         table.dp(unit="user", budget=dp.Budget(epsilon=1))
    ...         .count(max_rows=2)
    ...         .release(epsilon=0.5)
    ...     )
    >>> dp.audit.assert_private(
    ...     release, [(visits, other) for other in dp.audit.neighbours(visits, "user")]
    ... )
    """
    for number, (table, neighbour) in enumerate(tables):
        for seed in range(seeds):
            found = replay(release, table, neighbour, seed=seed)
            if not found.private:
                what = (
                    found.told
                    or f"the loss of its answers is {found.loss:.6g}, and {found.charged:.6g} was "
                    "charged"
                )
                raise AssertionError(
                    f"Not private on pair {number} of tables (seed {seed}): {what}."
                )


def _run(release: Callable[[Any], Any], table: Any, seed: int) -> tuple[Any, Transcript]:
    with given(seed) as said:
        result = release(table)
        return result, said


def _seen(result: object) -> tuple[list[Any], tuple[str, float, float]]:
    """All that results show, and what was charged for them together: its terms, its size, its δ."""
    results = result if isinstance(result, (list, tuple)) else [result]
    charges = {_entry(one): one.cost for one in results if hasattr(one, "cost")}
    if not charges:
        raise InvalidArgument(
            "replay: the function returns a release, or something with a cost=(ε, δ)."
        )
    shown = [
        part
        for one in results
        for part in (_shown(one) if isinstance(one, Exports) else [_text(one)])
    ]
    costs = [cost if isinstance(cost, Loss) else _charged(*cost) for cost in charges.values()]
    whole = sum(costs[1:], costs[0])
    terms = ("epsilon", whole.epsilon) if whole.rho is None else ("rho", whole.rho)
    return shown, (*terms, whole.delta)


def _charged(epsilon: float, delta: float) -> Loss:
    return Loss.charged(read_epsilon(epsilon), read_delta(delta))


def _entry(result: Any) -> object:
    """The charge that a result was paid with: a batch has one for all of its releases."""
    certified = isinstance(result, Released) and result._certified
    return result.certificate()["ledger"]["hash"] if certified else id(result)


def _text(result: object) -> str:
    return repr(vars(result) if hasattr(result, "__dict__") else result)


def _shown(release: Any) -> list[Any]:
    """All that a release shows, without the time."""
    words = {name: said for name, said in release.report().to_dict().items() if name != "drawn"}
    table = release.to_polars()
    said = [
        dict(table.schema),
        table.rows(),
        json.dumps(words, sort_keys=True, default=str),
        repr(release),
    ]
    return [*said, stated(release)] if isinstance(release, Released) else said


def stated(release: Released[Any]) -> str:
    """The certificate of a release without the entry of its charge and the time of its noise."""
    return json.dumps(
        {k: v for k, v in release.certificate().items() if k not in ("ledger", "drawn")}
    )
