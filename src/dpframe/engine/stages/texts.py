"""Parts of texts, and texts with other characters in place of some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw

from dpframe.plan import LONGEST_TEXT, ColumnDomain

if TYPE_CHECKING:
    from dpframe.engine.stages.lowering import Lowering

_LAST = 2**31 - 2  # the last place of a character that engines have a number for


def _slice(here: Lowering, args: Sequence[nw.Expr], _: Sequence[ColumnDomain], opts: Mapping[str, Any]) -> nw.Expr:
    offset, length = opts["offset"], opts["length"]
    most = _LAST - offset
    return here.held(here.read(args[0]).str.slice(offset, most if length is None else min(length, most)))


def _replace(here: Lowering, args: Sequence[nw.Expr], _: Sequence[ColumnDomain], opts: Mapping[str, Any]) -> nw.Expr:
    """Null where the text could become too long: engines fail there."""
    old, new = opts["old"], opts["new"]
    value = here.hold(here.read(args[0]))
    growth = -(-len(new) // len(old))
    if growth > 1:
        value = nw.when(value.str.len_chars() <= LONGEST_TEXT // growth).then(value)
    return here.held(here.replaced(value, old, new, every=opts["every"]))


def _split(here: Lowering, args: Sequence[nw.Expr], _: Sequence[ColumnDomain], opts: Mapping[str, Any]) -> nw.Expr:
    return here.held(here.piece(here.read(args[0]), opts["by"], opts["index"]))


TEXTS = {"str.slice": _slice, "str.replace": _replace, "str.split": _split}
