"""How far from a released quantile the true one may be, in the column's unit: by a second choice, among distances."""

from __future__ import annotations

from dpframe.theory.formulas.loss import fewer_rows

__all__ = ["distances", "margin"]


def distances(candidates: int) -> tuple[int, ...]:
    """The distances that are chosen from, in places of the candidates: from none to all, two to an octave.

    Input:  candidates: among how many places the quantile was chosen
    Output: increasing, from 0 to candidates - 1
    Bound:  public: they follow from the bounds alone

    >>> distances(10)
    (0, 1, 2, 3, 4, 6, 8, 9)
    """
    last = candidates - 1
    found = [0, *(2**i * part // 2 for i in range(last.bit_length() + 1) for part in (2, 3))]
    return (*sorted({d for d in found if d < last}), last) if last else (0,)


def margin(number: int, alpha: float, *, exponential: bool = False) -> float:
    """How many rows a distance must have to spare on either side, so that it is too short with probability alpha.

    Input:  number of distances; alpha in (0, 1); exponential: by the exponential mechanism, not by permute-and-flip
    Output: t, in scales of the choice (see `ranks.rank_scale`): `fewer_rows` of that many candidates
    Bound:  let v be the place of the released quantile and n the rows of its group, of which L(x) are below the place x
            and M(x) are not above it. A distance d has q·n - L(v - d) rows to spare below and M(v + d) - q·n above, and
            any number on a side where it reaches the first or last place; f(d), the smaller of both, grows with d. If a
            quantile Q of rank q (any value that has at least q·n rows not above it and at most q·n below it) is further
            than d from v, then f(d) <= 0: where Q > v + d, the rows not above v + d are below Q, so M(v + d) <= q·n,
            and where Q < v - d those not above Q are below v - d, so L(v - d) >= q·n. Pandas and Polars read Q off the
            rows beside the place 1 + q·(n - 1), of n in order: if that Q is further than d, then M(v + d) <=
            1 + q·(n - 1), or L(v - d) >= q·(n - 1), so f(d) <= c with c = max(q, 1 - q) rows. With d' the distance
            before d, the score of d is minus the largest of f(d') - c - t, c + t - f(d) and 0; the first has no f(d').
            So the first that has c + t to spare is the best, with score 0, and one that is too short has at most -t:
            with t as in `ranks.fewer_rows`, one of these is taken with probability alpha at most. This holds for every
            v, so for the released one.
            Privacy: a row that comes or goes moves q·n - L by q or by 1 - q either way, M - q·n too, so f, which is the
            smaller of both, and a score, which is the larger of such, by at most max(q, 1 - q): as much as a score of
            the quantile itself, whose scale and proof hold (`ranks.rank_scale`). v is released before, so both choices
            compose one after the other
    Source: McKenna and Sheldon 2020, arXiv:2010.12603, and Ding et al. 2021, arXiv:2105.07260, for the choice; the
            scores are ours
    Errors: none here

    >>> margin(1, 0.05), round(margin(23, 0.05), 4)
    (0.0, 5.3936)
    """
    return fewer_rows(1.0, number, alpha, exponential=exponential)
