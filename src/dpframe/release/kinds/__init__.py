"""Kinds of answer: each is one object that knows how its question is validated,
priced, read, drawn and laid out.

`answer_kind` finds the object of a question. A new kind of answer is a folder here and one line of
the table below.
"""

from typing import Any

from dpframe.plan import Hierarchy, Marginals, Question, Synthesis
from dpframe.release.kinds.answers import AnswerKind, TableAnswer
from dpframe.release.kinds.hierarchy.release import HierarchyAnswer
from dpframe.release.kinds.keys import KeysAnswer
from dpframe.release.kinds.marginals.release import MarginalsAnswer
from dpframe.release.kinds.synthesis.release import SyntheticAnswer
from dpframe.release.shown import Record

__all__ = ["AnswerKind", "Record", "answer_kind"]

_KEYS = KeysAnswer()
_KINDS: dict[type[Question], AnswerKind[Any]] = {
    Question: TableAnswer(),
    Hierarchy: HierarchyAnswer(),
    Marginals: MarginalsAnswer(),
    Synthesis: SyntheticAnswer(),
}


def answer_kind(question: Question) -> AnswerKind[Any]:
    """The kind of answer that a question asks for."""
    return _KEYS if question.in_rounds else _KINDS[type(question)]
