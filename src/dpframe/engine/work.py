"""What a release makes a cluster do: its jobs, and the shuffles of its plans. No row is read for it."""

from __future__ import annotations

from contextlib import suppress

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.compile import compiled
from dpframe.engine.marginals import empty_sums
from dpframe.engine.totals import guarded
from dpframe.errors import DpFrameError
from dpframe.plan import Marginals, Question, Synthesis
from dpframe.plan.steps import sources_of

__all__ = ["work_in_words"]


def work_in_words(question: Question) -> str:
    """The work of a release as a sentence; empty for an engine that is no cluster.

    It is also empty where plans depend on what the release finds out first: limits and bounds that it chooses, and keys
    that it finds in rounds. And it is empty where the engine cannot plan the question: then the release is refused.
    """
    elsewhere = any(source.data.engine != "spark" for source in sources_of(question.step))
    if elsewhere or question.undecided or question.in_rounds:
        return ""
    with suppress(DpFrameError):
        frames = guarded(lambda: _frames(question))
        work = guarded(lambda: backend_of(frames[0]).work(frames))
        if work is not None:
            return (
                f"On Spark, a release starts at most {_count(work.jobs, 'job')}, and its plan has "
                f"{_count(work.shuffles, 'shuffle')}. What the table itself needs comes on top."
            )
    return ""


def _frames(question: Question) -> list[Frame]:
    """The queries of a release, on tables without their rows."""
    if isinstance(question, Marginals) and not isinstance(question, Synthesis):
        return empty_sums(question)
    frames = compiled(question, 0, empty=True)
    return [*frames.mains, *frames.apart.values()]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
