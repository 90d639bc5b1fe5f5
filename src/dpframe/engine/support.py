"""Refusals of steps that an engine cannot run.
They depend on types alone and come before a row is read or charged.

What a release makes a cluster do is counted from the plans of its queries: see `work_in_words`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

import narwhals as nw
from narwhals.dtypes import DType

from dpframe.engine.backends import Frame, backend_named, backend_of
from dpframe.engine.compile import compiled
from dpframe.engine.forks import check_process
from dpframe.engine.totals import guarded
from dpframe.errors import DpFrameError, UnsupportedOperation
from dpframe.plan import Node, Pattern, Question, Task, counted, show
from dpframe.plan.steps import basic as steps
from dpframe.plan.steps import combine, rewrites, sources_of

_DEEPEST, _MOST = 300, 10_000  # steps after each other, and steps in all


def check_supported(step: steps.Step) -> None:
    """Refuse a step that the engine of its tables cannot do. Errors: UnsupportedOperation."""
    check_process()
    if step.depth > _DEEPEST or step.size > _MOST:
        raise UnsupportedOperation(
            f"{step.shown}: a question has {_DEEPEST} steps after each other at most, and "
            f"{_MOST:,} in all, those of a joined or concatenated table each time that it is read. "
            "Several columns can be written in one with_columns(...), and conditions joined in "
            "one filter((...) & (...))."
        )
    sources = steps.sources_of(step)
    names = sorted({source.data.engine for source in sources})
    engine = backend_named(names[0])
    several = sources if len(sources) > 1 else []
    frames = guarded(lambda: [source.data.scan((), empty=True) for source in several], before=True)
    if len(names) > 1 or not all(engine.together(frames[0], frame) for frame in frames[1:]):
        raise UnsupportedOperation(
            f"{step.shown}: the tables are in different places ({', '.join(names)}), and dpframe "
            "does not move rows from one to another. Protect tables of one engine and one "
            "connection."
        )
    for task, pattern in _searches(step):
        why = engine.against_search(sources[0].data.scan((), empty=True), task, pattern)
        if why:
            raise UnsupportedOperation(
                f"{step.shown}: str.{task} of a pattern: {why}. Compute the column before "
                "dp.protect(...), or protect a Polars table: dp.protect(pl.from_arrow(table), "
                "...)."
            )
    for dtype, subject in _types(step):
        why = (
            engine.reason_against(dtype)
            if isinstance(step, combine.Join)
            else engine.reason_against_cast(dtype)
        )
        if why:
            raise UnsupportedOperation(
                f"{step.shown}: {engine.name} cannot hold {subject} {show(dtype)}; {why}."
            )


def _types(step: steps.Step) -> Iterator[tuple[DType, str]]:
    """The types that a step introduces, each with the words for it in a message."""
    if isinstance(step, combine.Join):
        for name, domain in step.public.schema:
            yield domain.dtype, f"the public column {name!r} of type"
    for node in _written(step):
        yield from _casts(node)


def _written(step: steps.Step) -> Iterator[Node]:
    """The expressions of a step."""
    match step:
        case steps.Filter():
            yield step.condition._node
        case rewrites.Rewrite():
            yield from (node for _, node in step.written)


_TASKS = {
    "str.matches": Task.CONTAINS,
    "str.extract": Task.EXTRACT,
    "str.count_matches": Task.COUNT,
    "str.replace_matches": Task.REPLACE,
}


def _searches(step: steps.Step) -> Iterator[tuple[Task, Pattern]]:
    """Tasks of a step that search for patterns."""
    pending = list(_written(step))
    while pending:
        node = pending.pop()
        pending += node.args
        pattern = dict(node.options).get("pattern")
        if node.operation in _TASKS and isinstance(pattern, Pattern):
            yield _TASKS[node.operation], pattern


def _casts(node: Node) -> Iterator[tuple[DType, str]]:
    options = dict(node.options)
    if node.operation == "cast":
        yield options["dtype"], "the type"
    if options.get("zone") is not None:
        yield nw.Datetime("us", options["zone"]), "the type"
    for arg in node.args:
        yield from _casts(arg)


# Work of a cluster


def work_in_words(question: Question, queries: Callable[[Question], list[Frame]]) -> str:
    """The work of a release as a sentence; empty for an engine that is no cluster.

    Input:  queries(question): the queries of the release, on tables without their rows

    It is also empty where plans depend on what the release finds out first: limits and bounds that
    it chooses, and keys that it finds in rounds. And it is empty where the engine cannot plan the
    question: then the release is refused.
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
    """The queries of a release that reads the rows of a question
    once, on tables without their rows.
    """
    frames = compiled(question, 0, empty=True)
    return [*frames.mains, *frames.apart.values()]
