"""Random choices of a candidate, and of keys that are kept."""

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from dpframe.errors import InvalidArgument
from dpframe.noise import (
    bits,
    choosing,
    exponential_choice,
    keep_at_least,
    keep_probability,
    permute_and_flip,
    randomized_response,
    truncated_geometric_keep,
    uniform_index,
)
from dpframe.noise.choosing import _rule

DRAWS = 200_000


def permute_and_flip_law(scores, rate):
    """By its definition: every order, each candidate accepted with its probability."""
    accept = np.exp(-rate * (max(scores) - np.array(scores, float)))
    law = np.zeros(len(scores))
    orders = list(permutations(range(len(scores))))
    for order in orders:
        alive = 1.0
        for i in order:
            law[i] += alive * accept[i] / len(orders)
            alive *= 1 - accept[i]
    return law


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "scores", [[0], [3, 3], [5, 4], [3, 1, 0, 3], [-10, -7, -8, -9, -7], [0, 0, 0, 0, 1, 2]]
)
@pytest.mark.parametrize("rate", [Fraction(1, 2), 0.1, 2])
def test_permute_and_flip_has_the_law_of_its_definition(scores, rate, chi_square):
    chosen = permute_and_flip(np.tile(np.array(scores), (DRAWS, 1)), rate)
    law = permute_and_flip_law(scores, float(rate))
    if len(scores) > 1:
        assert chi_square(np.bincount(chosen, minlength=len(scores)), law) > 1e-8
        wrong = permute_and_flip_law(scores, float(rate) * 1.1)
        if abs(law - wrong).max() > 0.01:
            assert chi_square(np.bincount(chosen, minlength=len(scores)), wrong) < 1e-8


def test_permute_and_flip_is_not_the_exponential_mechanism(chi_square):
    scores = [2, 1, 0]
    chosen = permute_and_flip(np.tile(np.array(scores), (DRAWS, 1)), 1)
    weight = np.exp(np.array(scores, float))
    assert chi_square(np.bincount(chosen, minlength=3), weight / weight.sum()) < 1e-8


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "scores", [[0], [3, 3], [5, 4], [3, 1, 0, 3], [-10, -7, -8, -9, -7], list(range(40))]
)
@pytest.mark.parametrize("rate", [Fraction(1, 2), 0.1, 2])
def test_the_exponential_mechanism_has_the_law_of_its_definition(scores, rate, chi_square):
    chosen = exponential_choice(np.tile(np.array(scores), (DRAWS, 1)), rate)
    law, wrong = (np.exp(f * float(rate) * (np.array(scores) - max(scores))) for f in (1, 1.1))
    law, wrong = law / law.sum(), wrong / wrong.sum()
    seen = law > 1e-4  # the rest is too rare for the test, and has 0.004 of the draws at most
    found = np.bincount(chosen, minlength=len(scores))
    if len(scores) > 1:
        assert chi_square(found[seen], law[seen] / law[seen].sum()) > 1e-8
        if abs(law - wrong).max() > 0.01:
            assert chi_square(found[seen], wrong[seen] / wrong[seen].sum()) < 1e-8


def test_gumbel_draws_are_as_exact_as_said():
    """Whatever the words: at both ends of the unit interval, and in the middle."""
    draw = np.random.default_rng(1)
    size = draw.integers(0, 64, 2000).astype(np.uint64)
    near = draw.integers(0, 1 << 63, 2000).astype(np.uint64) >> size
    words = np.concatenate([near, ~near, np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)])
    drawn, off = choosing._gumbel(words)
    with ctx.workprec(300):
        for word, value, error in zip(words.tolist(), drawn.tolist(), off.tolist(), strict=True):
            for end in (word, word + 1):
                if 0 < end < 2**64 and error < np.inf:
                    true = -(-(arb(end) / arb(2) ** 64).log()).log()
                    assert abs(true - arb(value)) <= error, word
    assert (off[words > 2**40] < 1e-6).mean() > 0.5


def test_near_ties_of_gumbel_draws_are_decided_by_more_bits(monkeypatch):
    # Scores 1 and 0 at rate 1: ln V2 = ln V1 / e, so that the keys agree in all the bits that one
    # word shows.
    asked = []
    inner = choosing._exact_best
    monkeypatch.setattr(choosing, "_exact_best", lambda *args: asked.append(args) or inner(*args))
    with ctx.workprec(300):
        first = 2**62 + 12_345
        tied = ((arb(first) / arb(2) ** 64).log() / arb(1).exp()).exp()
        second = int((tied * arb(2) ** 64).floor().unique_fmpz())
    for words in (
        [first, second, 0, 0, 0, 0],
        [first, second - 1, 0, 7],
        [first, second + 2, 0, 0],
    ):
        with bits.replay(words + [1 << 63] * 8):
            (chosen,) = exponential_choice(np.array([[1, 0]]), 1).tolist()
        with ctx.workprec(300):
            u = [
                (arb(words[i]) * 2**64 + words[i + 2] + arb(0.5)) / arb(2) ** 128 for i in range(2)
            ]
            g = [-(-x.log()).log() for x in u]
            truth = 0 if g[0] + 1 > g[1] else 1
        assert chosen == truth
    assert asked


def test_words_at_both_ends_are_decided_by_more_bits():
    for end in (0, (1 << 64) - 1):
        with bits.replay([end, end, 40, 3, 5, 5]):
            assert exponential_choice(np.array([[0, 0]]), 1).tolist() == [0]


def test_groups_of_different_scores_in_one_call():
    scores = np.array([[0, 2**62, 0], [-(2**63), 2**63 - 1, 0], [1, 0, 10**9]])
    assert permute_and_flip(scores, 1).tolist() == [1, 1, 2]
    assert permute_and_flip(np.array([[2**64 - 1, 0]], np.uint64), 1).tolist() == [0]
    assert permute_and_flip(np.zeros((0, 3), int), 1).shape == (0,)


def test_near_ties_are_decided_by_more_bits(monkeypatch):
    # Scores 1 and 0 at rate 1: V2 = V1·e, so that the keys agree in all the bits that one word
    # shows.
    asked = []
    inner = choosing._exact_best
    monkeypatch.setattr(choosing, "_exact_best", lambda *args: asked.append(args) or inner(*args))
    with ctx.workprec(300):
        first = 2**62 + 12_345
        second = int((arb(first) * arb(-1).exp()).floor().unique_fmpz())
    for words, winner in (
        ([first, second, 0, 0, 0, 0], None),
        ([first, second, (1 << 64) - 1, 0], 1),
        ([first, second - 1, 0, (1 << 64) - 1], 1),
        ([first, second + 2, 0, 0], 0),
    ):
        with bits.replay(words + [1 << 63] * 8):
            (chosen,) = permute_and_flip(np.array([[1, 0]]), 1).tolist()
        with ctx.workprec(300):
            u = [
                (arb(words[i]) * 2**64 + words[i + 2] + arb(0.5)) / arb(2) ** 128 for i in range(2)
            ]
            truth = 0 if -u[0].log() > -u[1].log() - 1 else 1
        assert chosen == truth
        assert winner is None or chosen == winner
    assert asked


def test_equal_words_and_words_of_zeros_are_decided_by_more_bits():
    with bits.replay([9, 9, 40, 3]):
        assert permute_and_flip(np.array([[0, 0]]), 1).tolist() == [1]
    with bits.replay([0, 0, 40, 3, 5, 5]):
        assert permute_and_flip(np.array([[0, 0]]), 1).tolist() == [1]


@pytest.mark.parametrize(
    ("scores", "rate"),
    [
        (np.zeros(3, int), 1),
        (np.zeros((2, 0), int), 1),
        (np.zeros((2, 2)), 1),
        (np.zeros((2, 2), int), 0),
    ],
)
def test_scores_and_rates_that_make_no_sense_are_refused(scores, rate):
    with pytest.raises(InvalidArgument):
        permute_and_flip(scores, rate)
    with pytest.raises(InvalidArgument, match="exponential_choice"):
        exponential_choice(scores, rate)


@pytest.mark.parametrize("choices", [1, 2, 3, 7, 1000])
def test_uniform_index_is_uniform(choices, chi_square):
    counts = np.bincount(uniform_index(choices, DRAWS), minlength=choices)
    assert len(counts) == choices
    if choices > 1:
        assert chi_square(counts, np.full(choices, 1 / choices)) > 1e-8


@pytest.mark.parametrize("choices", [2, 3, 7, 2**32 - 5, 2**32])
def test_uniform_index_reads_on_at_a_boundary(choices):
    edges = [j * 2**64 // choices for j in (1, choices // 2, choices - 1) if j]
    for word in {0, (1 << 64) - 1, *edges, *(edge - 1 for edge in edges)}:
        for more in (0, 1 << 63, (1 << 64) - 1):
            with bits.replay([word, more, 1 << 63]):
                (index,) = uniform_index(choices, 1).tolist()
            assert index == choices * (word * 2**128 + more * 2**64 + 2**63) >> 192


@pytest.mark.parametrize("choices", [0, -1, 2**32 + 1])
def test_choices_out_of_range_are_refused(choices):
    with pytest.raises(InvalidArgument):
        uniform_index(choices, 1)


@pytest.mark.parametrize(("choices", "keep"), [(2, Fraction(3, 4)), (4, 0.5), (5, 0), (3, 1)])
def test_randomized_response_has_its_law(choices, keep, chi_square):
    for value in range(choices):
        answers = randomized_response(np.full(DRAWS // 2, value), choices, keep)
        law = np.full(choices, (1 - float(keep)) / (choices - 1))
        law[value] = float(keep)
        counts = np.bincount(answers, minlength=choices)
        assert not counts[law == 0].any()
        assert chi_square(counts[law > 0], law[law > 0]) > 1e-8 or keep == 1


def test_randomized_response_on_booleans_and_shapes():
    truth = np.array([[True, False], [False, True]])
    assert (randomized_response(truth, 2, 1) == truth).all()
    assert (randomized_response(truth, 2, 0) != truth).all()
    flips = int(randomized_response(np.zeros(DRAWS, bool), 2, 0.9).sum())
    assert stats.binomtest(flips, DRAWS, 0.1).pvalue > 1e-8


@pytest.mark.parametrize(
    ("values", "choices", "keep"),
    [
        (np.array([3]), 3, 0.5),
        (np.array([-1]), 3, 0.5),
        (np.array([0]), 1, 0.5),
        (np.array([0.5]), 2, 0.5),
    ],
)
def test_answers_outside_the_choices_are_refused(values, choices, keep):
    with pytest.raises(InvalidArgument):
        randomized_response(values, choices, keep)


def test_a_value_at_the_threshold_is_kept():
    assert keep_at_least(np.array([4, 5, 6]), 5).tolist() == [False, True, True]
    assert keep_at_least(np.array([2**70, -(2**70)], dtype=object), 0).tolist() == [True, False]


CASES = [
    (1, Fraction(1, 1000)),
    (0.1, 1e-6),
    (Fraction(1, 3), Fraction(1, 10**9)),
    (5, 0.01),
    (0, 0.3),
    (2, 0.5),
]


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_the_closed_form_is_the_recursion(rate, start):
    # π(n) = min(e^ε π(n-1) + δ, 1 - e^-ε (1 - π(n-1) - δ), 1), in 400 bits.
    with ctx.workprec(400):
        grow = (
            arb(rate.numerator) / rate.denominator if isinstance(rate, Fraction) else arb(rate)
        ).exp()
        first = (
            arb(start.numerator) / start.denominator if isinstance(start, Fraction) else arb(start)
        )
        p = arb(0)
        for count in range(1, _rule(Fraction(rate), Fraction(start)).last + 4):
            options = [grow * p + first, 1 - (1 - p - first) / grow, arb(1)]
            p = min(options, key=lambda x: float(x.mid()))
            low, high = keep_probability(count, rate, start)
            assert low - 1e-15 <= float(p.mid()) <= high + 1e-15
            assert high - low < 1e-15
        assert float(p.mid()) == 1


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_no_step_grows_faster_than_the_rate_allows(rate, start):
    # (ε, δ) for one unit: π(n+1) ≤ e^ε π(n) + δ and 1 - π(n) ≤ e^ε (1 - π(n+1)) + δ.
    for count in range(_rule(Fraction(rate), Fraction(start)).last + 2):
        (here, _), (_, more) = (
            keep_probability(count, rate, start),
            keep_probability(count + 1, rate, start),
        )
        assert more <= np.exp(float(rate)) * here + float(start) + 1e-12
        assert 1 - here <= np.exp(float(rate)) * (1 - more) + float(start) + 1e-12


@pytest.mark.parametrize(("rate", "start"), CASES)
def test_keys_are_kept_as_often_as_they_should_be(rate, start):
    last = _rule(Fraction(rate), Fraction(start)).last
    for count in {1, 2, last // 2, last - 1, last} & set(range(1, last + 1)):
        kept = int(truncated_geometric_keep(np.full(200_000, count), rate, start).sum())
        assert stats.binomtest(kept, 200_000, keep_probability(count, rate, start)[0]).pvalue > 1e-8


def test_empty_keys_never_show_and_full_ones_always_do():
    counts = np.array([[-3, 0, 10**12], [2**62, 0, -(2**62)]])
    for _ in range(50):
        assert truncated_geometric_keep(counts, 1, 1e-3).tolist() == [
            [False, False, True],
            [True, False, False],
        ]
    assert truncated_geometric_keep(np.array([], int), 1, 1e-3).shape == (0,)
    assert truncated_geometric_keep(np.array([2], np.uint8), 5, 0.5).all()


def test_a_key_at_its_probability_reads_more_bits():
    with ctx.workprec(300):
        first = arb(1) / 1000
        p = first * arb(1).exp() + first
        word = int((p * 2**64).floor().unique_fmpz())
        rest = p * 2**64 - word
    for more in (0, 1 << 63, (1 << 64) - 1):
        with bits.replay([word, more, 1 << 63]):
            (kept,) = truncated_geometric_keep(np.array([2]), 1, Fraction(1, 1000)).tolist()
        with ctx.workprec(300):
            assert kept == bool(arb(more) / arb(2) ** 64 < rest)


@pytest.mark.parametrize(
    ("rate", "start"), [(-1, 0.1), (1, 0), (1, 1), (1, -0.5), (float("nan"), 0.1)]
)
def test_rules_that_make_no_sense_are_refused(rate, start):
    with pytest.raises(InvalidArgument):
        truncated_geometric_keep(np.array([1]), rate, start)


def test_counts_must_be_integers():
    with pytest.raises(InvalidArgument, match="integers"):
        truncated_geometric_keep(np.array([1.5]), 1, 0.1)


# Many candidates with one score


@pytest.mark.parametrize("choose", [permute_and_flip, exponential_choice])
def test_copies_have_the_law_of_as_many_candidates(choose, chi_square):
    """Beside each candidate on its own; at another number of copies, the law would not fit."""
    scores, copies, draws = [0, -3, -2, -5], [3, 0, 40, 7], 40_000
    alone = np.repeat(scores, copies)
    law = (
        np.bincount(
            np.repeat(np.arange(4), copies)[choose(np.tile(alone, (DRAWS, 1)), 1)], minlength=4
        )
        / DRAWS
    )
    tables = [np.tile(np.array(row), (draws, 1)) for row in (scores, copies, [3, 0, 60, 7])]
    found, wrong = (np.bincount(choose(tables[0], 1, table), minlength=4) for table in tables[1:])
    used = law > 0
    assert not found[~used].any()
    assert stats.chi2_contingency([found[used], law[used] * DRAWS]).pvalue > 1e-8
    assert stats.chi2_contingency([wrong[used], law[used] * DRAWS]).pvalue < 1e-8


def test_one_copy_of_each_is_the_choice_among_them():
    """The same words choose the same candidate, for one copy of each and without copies."""
    scores = np.random.default_rng(1).integers(-5, 1, (2000, 9))
    for choose in (permute_and_flip, exponential_choice):
        with bits.record() as words:
            plain = choose(scores, 0.7)
        with bits.replay(words):
            assert (choose(scores, 0.7, np.ones_like(scores)) == plain).all()


@pytest.mark.parametrize("law", [choosing._EXPONENTIAL, choosing._GUMBEL])
def test_the_largest_of_many_draws_is_as_exact_as_said(law):
    """Whatever the words and the number of copies:
    at both ends of the unit interval, and in the middle.
    """
    draw = np.random.default_rng(1)
    near = draw.integers(0, 1 << 63, 1000).astype(np.uint64) >> draw.integers(0, 64, 1000).astype(
        np.uint64
    )
    words = np.concatenate([near, ~near, np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], np.uint64)])
    copies = np.rint(2 ** draw.uniform(0, 40, len(words))).astype(np.int64)
    drawn, off = law.most(words, copies)
    with ctx.workprec(300):
        for word, many, value, error in zip(
            words.tolist(), copies.tolist(), drawn.tolist(), off.tolist(), strict=True
        ):
            for end in (word, word + 1):
                if 0 < end < 2**64 and error < np.inf:
                    true = law.exact_most(arb(end) / arb(2) ** 64, many)
                    assert abs(true - arb(value)) <= error, (word, many)
    assert (off[(words > 2**40) & (words < 2**64 - 2**40)] < 1e-6).mean() > 0.5


def test_near_ties_of_copies_are_decided_by_more_bits(monkeypatch):
    asked = []
    inner = choosing._exact_best
    monkeypatch.setattr(choosing, "_exact_best", lambda *args: asked.append(args) or inner(*args))
    with bits.replay([9, 9, 40, 3]):
        assert permute_and_flip(np.array([[0, 0]]), 1, np.array([[5, 5]])).tolist() == [1]
    assert asked


def test_a_candidate_without_copies_is_no_rival_of_any_word():
    """Nor where the word of the only other one is at the end of the unit interval,
    where its float tells nothing.
    """
    for choose in (permute_and_flip, exponential_choice):
        for end in (0, 3, (1 << 64) - 1):
            with bits.replay([end, end, end, *[1 << 63] * 8]):
                assert choose(np.array([[5, 0, 9]]), 1, np.array([[0, 1, 0]])).tolist() == [1]


def test_uniform_indexes_of_different_numbers(chi_square):
    many = np.tile(np.array([1, 2, 5, 2**32]), DRAWS // 4)
    drawn = uniform_index(many, DRAWS)
    assert (drawn < many).all()
    for number in (2, 5):
        assert (
            chi_square(
                np.bincount(drawn[many == number], minlength=number), np.full(number, 1 / number)
            )
            > 1e-8
        )
    with pytest.raises(InvalidArgument):
        uniform_index(np.array([3, 0]), 2)
