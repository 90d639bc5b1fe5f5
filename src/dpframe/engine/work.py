"""What a release makes a cluster do: its jobs, and the shuffles of its plans. No row is read for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dpframe.engine.backends import Frame, backend_of
from dpframe.engine.compile import compiled
from dpframe.engine.totals import guarded
from dpframe.errors import DpFrameError
from dpframe.plan import Question, counted
from dpframe.plan.steps import sources_of


def work_in_words(question: Question, queries: Callable[[Question], list[Frame]]) -> str:
    """The work of a release as a sentence; empty for an engine that is no cluster.

    Input:  queries(question): the queries of the release, on tables without their rows

    It is also empty where plans depend on what the release finds out first: limits and bounds that it chooses, and keys
    that it finds in rounds. And it is empty where the engine cannot plan the question: then the release is refused.
    """
    elsewhere = any(source.data.engine != "spark" for source in sources_of(question.step))
    if elsewhere or question.undecided or question.in_rounds:
        return ""
    with suppress(DpFrameError):
        frames = guarded(lambda: queries(question))
        work = guarded(lambda: backend_of(frames[0]).work(frames))
        if work is not None:
            return (
                f"On Spark, a release starts at most {counted(work.jobs, 'job')}, and its plan has "
                f"{counted(work.shuffles, 'shuffle')}. What the table itself needs comes on top."
            )
    return ""


def queries(question: Question) -> list[Frame]:
    """The queries of a release that reads the rows of a question once, on tables without their rows."""
    frames = compiled(question, 0, empty=True)
    return [*frames.mains, *frames.apart.values()]
