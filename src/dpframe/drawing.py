"""The common parts of all charts: Altair, texts that end no script,
and a page that needs no network.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpframe.errors import UnsupportedOperation
from dpframe.safe_text import for_script

Chart = Any  # of Altair, an extra: a chart, or a part of one such as an axis or a scale
Entries = dict[str, Any]  # what Altair takes by name: a row of data, the settings of a part, a size


def altair() -> Any:
    """The module Altair. Errors: UnsupportedOperation, with the line to install it."""
    try:
        import altair as module
    except ImportError as problem:
        raise UnsupportedOperation(
            "Charts need Altair. Install it with: pip install altair"
        ) from problem
    return module


def finished(chart: Chart) -> Chart:
    """A chart of Altair as it is given to users: harmless in a
    page, which has all scripts in it.
    """
    chart = _harmless(chart)
    kind = type(chart)
    object.__setattr__(
        chart, "__class__", type(kind.__name__, (_Alone, kind), {"__doc__": kind.__doc__})
    )
    return chart


def _harmless(part: Any) -> Any:
    """A part of a chart in whose texts, such as keys, no page sees the end
    of its script: see `for_script`.
    """
    match part:
        case str():
            return for_script(part)
        case Mapping():
            return {name: _harmless(inner) for name, inner in part.items()}
        case list() | tuple():
            return type(part)(map(_harmless, part))
    if isinstance(part, altair().SchemaBase):
        part = part.copy(deep=False)
        part._kwds.update(_harmless(part._kwds))
    return part


class _Alone:
    """A chart whose page holds all scripts, so that it opens without a network;
    `inline=False` leaves them out.
    """

    def save(self, fp: Any, format: str | None = None, *more: Any, **options: Any) -> None:
        """Altair's `save`."""
        is_page = format == "html" or (format is None and str(fp).endswith(".html"))
        super().save(fp, format, *more, **{"inline": is_page, **options})  # type: ignore[misc]

    def to_html(self, *given: Any, inline: bool = True, **options: Any) -> Any:
        """Altair's `to_html`."""
        return super().to_html(*given, inline=inline, **options)  # type: ignore[misc]
