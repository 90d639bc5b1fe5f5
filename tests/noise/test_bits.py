import multiprocessing
import pickle
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dpframe import noise
from dpframe.errors import DpFrameError
from dpframe.noise import bits

SAMPLERS = [
    lambda: noise.rounded_laplace(1e9, 20),
    lambda: noise.discrete_laplace(1e9, 20),
    lambda: noise.rounded_gaussian(1e9, 20),
    lambda: noise.rounded_gaussian(2.0**50, 20),
    lambda: noise.rounded_laplace(2.0**50, 20),
    lambda: noise.uniform_index(2**32, 20),
    lambda: noise.bernoulli(0.5, 200).astype(int),
    lambda: noise.bernoulli_exp(np.full(200, 0.7)).astype(int),
    lambda: noise.permute_and_flip(np.zeros((50, 64), np.int64), 1),
    lambda: noise.randomized_response(np.zeros(200, int), 4, 0.5),
    lambda: noise.truncated_geometric_keep(np.full(200, 10), 0.01, 0.05).astype(int),
]


def draw_many(_=None):
    return noise.rounded_laplace(2.0**40, 4).tolist()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_every_sampler_replays_from_recorded_words(sampler):
    with bits.record() as words:
        first = sampler()
    assert words, "randomness passed by another door"
    with bits.replay(words):
        assert sampler().tolist() == first.tolist()
    assert sampler().tolist() != first.tolist()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_seeds_change_nothing(sampler):
    import polars

    draws = []
    for _ in range(2):
        random.seed(7)
        np.random.seed(7)
        polars.set_random_seed(7)
        draws.append(sampler().tolist())
    assert draws[0] != draws[1]


def test_all_randomness_comes_from_the_operating_system(monkeypatch):
    asked = []
    monkeypatch.setattr(bits.os, "urandom", lambda count: asked.append(count) or b"\x55" * count)
    assert noise.rounded_laplace(1e9, 20).tolist() == noise.rounded_laplace(1e9, 20).tolist()
    assert asked == [160, 160]


def test_replay_ends_with_its_words():
    with bits.replay([1, 2]):
        assert bits.random_words(2).tolist() == [1, 2]
        with pytest.raises(DpFrameError, match="1 more random words"):
            bits.random_words(1)
    assert len(bits.random_words(3)) == 3


def test_replay_and_record_nest_and_hold_only_in_their_own_thread():
    seen = []
    with bits.replay([5] * 10), bits.record() as words:
        thread = threading.Thread(target=lambda: seen.append(bits.random_words(4).tolist()))
        thread.start()
        thread.join()
        assert bits.random_words(2).tolist() == [5, 5]
    assert [part.tolist() for part in words] == [[5, 5]]
    assert seen[0] != [5] * 4


def test_words_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        bits.random_words(3)[0] = 1


def unique(results):
    values = [tuple(result) for result in results]
    return len(set(values)) == len(values)


# Python 3.12+: other tests may have left threads
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this platform cannot fork"
)
def test_forked_processes_never_repeat_a_draw():
    before = draw_many()
    with multiprocessing.get_context("fork").Pool(3) as pool:
        results = pool.map(draw_many, range(30))
    assert unique([before, *results, draw_many()])


def test_spawned_processes_never_repeat_a_draw():
    code = "from dpframe import noise; print(noise.rounded_laplace(2.0**40, 4).tolist())"
    results = [
        tuple(
            eval(
                subprocess.run(
                    [sys.executable, "-c", code], capture_output=True, text=True, check=True
                ).stdout
            )
        )
        for _ in range(2)
    ]
    assert unique(results)


def test_pickled_samplers_never_repeat_a_draw():
    copies = [pickle.loads(pickle.dumps(noise.rounded_laplace)) for _ in range(5)]
    assert unique([copy(2.0**40, 4).tolist() for copy in copies])


def test_threads_never_repeat_a_draw_and_agree_with_ball_arithmetic():
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(draw_many, range(400)))
        # Scales above 2^63 pass the lock of ball arithmetic in every draw.
        huge = list(
            pool.map(lambda _: tuple(noise.rounded_laplace(2.0**70, 3).tolist()), range(100))
        )
    assert unique(results)
    assert unique(huge)
