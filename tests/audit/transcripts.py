"""What a release learns of its rows, answer by answer: each noise and each choice, and what one unit moves before it.

A release is a chain of private answers (noisy histograms, noisy totals, choices), each of which may depend on the rows
and on the answers before it; the rest follows from these answers. Here the answers are not drawn but given beforehand,
the same for two neighbouring tables. Then

- all that can be seen must be the same, to the last letter: numbers, words, charges. What differs is a leak;
- the privacy loss of exactly this chain of answers is known: what each answer adds is bounded by how far its exact
  numbers are apart in the two tables and by the scale of its noise, and these add up, as in any adaptive composition.
  Held against what was charged, nothing is left to chance.

Source: Dwork, Rothblum, Vadhan 2010, doi:10.1109/FOCS.2010.12, for adaptive composition; the loss of each answer is in
`Answer.epsilon` and `Answer.rho`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpframe.budget import account
from dpframe.engine import ONE
from dpframe.noise import bits, contrasts
from dpframe.plan.columns import Limits
from dpframe.release.auto import choice as auto
from dpframe.release.auto import noisy_histograms
from dpframe.release.auto import value_histograms as values
from dpframe.release.auto.error_model import Expected, Judged
from dpframe.release.kinds.marginals import draw as marginals
from dpframe.release.pricing import NoiseKind, choice_mechanisms, mechanisms, shared_noise
from dpframe.theory.formulas.loss import loss as privacy

CHOICES = ("permute_and_flip", "exponential")
NORMAL = ("gaussian", "contrasts", "elliptic")


@dataclass(frozen=True)
class Answer:
    """One mechanism's answer: of which stage, by which noise of which scale, and the exact numbers it was made of.

    Of a choice they are the scores of the candidates, by group, and `scale` is 1 / rate. Of an interaction of marginals
    they are contrasts, and `sizes` says of how many keys. Of elliptic noise `scale` is the deviation of each number's
    own noise and `shared` that of the noise that all numbers share.
    """

    stage: str
    family: str
    scale: float
    exact: np.ndarray
    sizes: tuple[int, ...] = ()
    shared: float = 0.0

    def moved(self, other: Answer) -> np.ndarray:
        """How far the numbers are apart, in scales: of each number, or the range of each group's scores."""
        same = (self.stage, self.family, self.scale, self.shared, self.sizes, self.exact.shape)
        assert same == (other.stage, other.family, other.scale, other.shared, other.sizes, other.exact.shape)
        here, there = (np.atleast_1d(one.exact).astype(object) for one in (self, other))
        apart = (here - there).astype(np.float64) / self.scale
        if self.family in CHOICES:  # what all scores move by together moves no choice
            return np.asarray(apart.max(axis=-1) - apart.min(axis=-1))
        if self.family == "k-norm":  # the largest rise and the largest fall of a number, added
            return np.array([max(0.0, np.max(apart, initial=0)) + max(0.0, np.max(-apart, initial=0))])
        if self.family == "elliptic":
            return self._elliptic(np.ravel(apart))
        return np.ravel(np.abs(apart)) if self.family != "contrasts" else self._whitened(np.ravel(apart))

    def _whitened(self, apart: np.ndarray) -> np.ndarray:
        """Contrasts D·v with the noise D·g of normals g: as long as the projection of v that D sees."""
        cells = int(np.prod(self.sizes))
        ones = np.eye(cells, dtype=np.int64).reshape(cells, *self.sizes)
        made = np.array([np.ravel(contrasts(one)) for one in ones], np.float64).T
        return np.linalg.solve(np.linalg.cholesky(made @ made.T), apart)

    def _elliptic(self, apart: np.ndarray) -> np.ndarray:
        """√(v'·S⁻¹·v) for the covariance S of the noise: 1 for each number, and the shared variance everywhere."""
        covariance = np.eye(len(apart)) + (self.shared / self.scale) ** 2
        return np.sqrt(apart @ np.linalg.solve(covariance, apart))[None]

    def epsilon(self, other: Answer) -> float:
        """The pure loss. Laplace: |Δ| / scale of each number. A choice: rate times the range of Δ, of each group."""
        assert self.family not in NORMAL
        return float(self.moved(other).sum())

    def rho(self, other: Answer) -> float:
        """The concentrated loss of each number or group, added: see `theory.formulas.loss.loss`."""
        law = {
            "laplace": lambda x: x + np.exp(-x) - 1,
            "discrete_laplace": lambda x: x * np.tanh(x / 2),
            "gaussian": lambda x: x**2 / 2,
            "contrasts": lambda x: x**2 / 2,
            "elliptic": lambda x: x**2 / 2,
            "k-norm": lambda x: x * np.tanh(x / 2),
            "exponential": lambda x: x**2 / 8,
            "permute_and_flip": lambda x: privacy.permute_and_flip_rho(x) if x else 0.0,
        }[self.family]
        return float(sum(law(x) for x in np.ravel(self.moved(other)).tolist()))


@dataclass
class Transcript:
    """The answers of a release, in order."""

    seed: int
    answers: list[Answer] = field(default_factory=list)

    def generator(self) -> np.random.Generator:
        """Of the next answer: the same after as many answers, whatever they were about."""
        return np.random.default_rng([self.seed, len(self.answers)])


class _Given:
    """In place of noise: added to exact numbers it notes them, and gives what was settled beforehand."""

    __array_ufunc__ = None  # so that `numbers + given` asks here
    dtype = np.dtype(np.int64)

    def __init__(
        self, said: Transcript, stage: str, family: str, scale: float, sizes: Sequence[int] = (), shared: float = 0.0
    ) -> None:
        self._said, self._about = said, (stage, family, float(scale), tuple(sizes), shared)

    def __getitem__(self, _: slice) -> _Given:
        return self

    def __len__(self) -> int:
        return 0  # nothing in it is large

    def astype(self, _: Any) -> _Given:
        return self

    def __radd__(self, exact: Any) -> np.ndarray:
        exact, rng = np.asarray(exact), self._said.generator()
        stage, family, scale, sizes, shared = self._about
        self._said.answers.append(Answer(stage, family, scale, exact.copy(), sizes, shared))
        if stage == "histogram":  # a heap of people anywhere, so that limits and bounds of all sizes are chosen
            at = np.arange(len(exact)) - rng.integers(0, len(exact))
            return np.where((at >= 0) & (at < 5), rng.integers(0, 99 * ONE), 0)
        return np.asarray(rng.integers(-100, 1000, exact.shape))


def _settled_limits(said: Transcript) -> Any:
    """In place of the choice of limits, which takes a second: any limits there are, as the answers so far settle."""

    def best(ask: Any, rest: Any, people: Any) -> Any:
        rng = said.generator()
        rows, groups, most = (int(rng.choice([1, 2, 3, 8, 60])) for _ in range(3))
        limits = [Limits(rows), Limits(rows), Limits(max_groups=groups, max_rows_per_group=most)]
        limits += [Limits(rows, groups, most), Limits(rows, groups)]
        made = limits[rng.integers(len(limits) if ask.by else 2)]
        made = dataclasses.replace(made.and_also(ask.table.limits.and_also(ask.given)), auto=None)
        model = Expected(ask, people, rest.plans)
        apart = [name for names in auto._columns_apart(ask) for name in names if rng.integers(2)]
        own = {name: Limits(int(rng.choice([1, 2, 8, 60]))) for name in apart}
        kinds = rest.plans(ask.with_limits(made)).keys()
        noise = NoiseKind.GAUSSIAN if NoiseKind.GAUSSIAN in kinds else NoiseKind.LAPLACE
        errors = dict.fromkeys((output.name for output in ask.outputs), 1.0)
        return Judged(made, own, noise, np.ones(1), errors), model.left(made, model.kept(made))

    return best


@contextlib.contextmanager
def given(seed: int, *, choosing: bool = False) -> Iterator[Transcript]:
    """Answers of releases in this block are settled by the seed; what they would have been about is noted.

    Unless they are `choosing`, limits are settled too: whatever limits follow from the answers must be private.
    """
    said, words = Transcript(seed), np.random.default_rng([seed])

    def noise(stage: str, family: str) -> Any:
        return lambda scale, size: _Given(said, stage, family, scale)

    def choice(family: str) -> Any:
        def choose(scores: np.ndarray, rate: Any) -> np.ndarray:
            rng = said.generator()
            said.answers.append(Answer("answer", family, float(1 / rate), np.array(scores)))
            return rng.integers(0, scores.shape[1], len(scores))

        return choose

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(noisy_histograms, "rounded_laplace", noise("histogram", "laplace"))
        patch.setattr(mechanisms, "rounded_laplace", noise("answer", "laplace"))
        patch.setattr(mechanisms, "discrete_laplace", noise("answer", "discrete_laplace"))
        patch.setattr(mechanisms, "rounded_gaussian", noise("answer", "gaussian"))
        patch.setattr(
            shared_noise,
            "shared_gaussian",
            lambda own, shared, size: _Given(said, "answer", "elliptic", own, shared=shared),
        )
        window = lambda scale, cells: _Given(said, "answer", "k-norm", scale)  # noqa: E731
        patch.setattr(shared_noise, "window_noise", window)
        mixed = lambda scale, sizes: _Given(said, "answer", "contrasts", scale, sizes)  # noqa: E731
        patch.setattr(marginals, "rounded_contrasts", mixed)
        patch.setattr(choice_mechanisms, "permute_and_flip", choice("permute_and_flip"))
        patch.setattr(choice_mechanisms, "exponential_choice", choice("exponential"))
        if not choosing:
            patch.setattr(auto, "_best", _settled_limits(said))
            patch.setattr(values, "draw_curves", lambda counts, _, number, **__: np.tile(counts.clip(0), (number, 1)))
            patch.setattr(values, "nobody_there", lambda counts, _: float(counts.sum() <= 0))
        salt = f"{seed:032x}"
        patch.setattr(account, "secrets", SimpleNamespace(token_hex=lambda _: salt))  # of partitions
        with bits.substitute(lambda count: words.integers(0, 2**64, count, dtype=np.uint64)):  # salts
            yield said


def loss(one: Transcript, other: Transcript, terms: str, delta: float) -> float:
    """What two tables differ in, in these answers: in ε at a δ, or in ρ.

    Bound:  in ρ all answers add up, and so do pure losses in ε. Gaussian answers together have μ² = Σ (Δ/σ)², and ε by
            their profile at δ, on top of what is pure. With choices by the exponential mechanism the second stage is
            one mechanism of ρ, converted at δ. The first stage is pure
    """
    pairs = list(zip(one.answers, other.answers, strict=True))
    if terms == "rho":
        return sum(a.rho(b) for a, b in pairs)
    first = sum(a.epsilon(b) for a, b in pairs if a.stage == "histogram")
    second = [(a, b) for a, b in pairs if a.stage != "histogram"]
    normal = [(a, b) for a, b in second if a.family in NORMAL]
    if any(a.family == "exponential" for a, _ in second):
        rho = sum(a.rho(b) for a, b in second)
        return first + (privacy.zcdp_to_epsilon(rho, delta) if rho else 0.0)
    pure = sum(a.epsilon(b) for a, b in second if a.family not in NORMAL)
    mu = float(np.sqrt(sum((a.moved(b) ** 2).sum() for a, b in normal)))
    return first + pure + (privacy.gaussian_epsilon(delta, mu) if mu else 0.0)
