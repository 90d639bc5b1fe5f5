"""Events of releases while they run: log records of the logger
`dpframe`, and callbacks for metrics.
"""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, NamedTuple

from dpframe.budget import Loss, Receipt
from dpframe.errors import InvalidArgument
from dpframe.safe_text import visible
from dpframe.usage import door

LOG = logging.getLogger("dpframe")
_CALLBACKS: list[Callable[[Event], object]] = []


class Event(NamedTuple):
    """One step of a release: public facts alone, none of data.

    `what` is "charged", "released" (its table is stored), "failed" (after the charge), "stored" (an
    earlier answer was read, for free) or "refused" (nothing was charged; `refusal` is the class of
    the error). A series is charged once, at its whole price, and its periods at 0. `budget` is the
    name of the budget in its ledger, `name` that of the release, `number` that of its charge (0
    without one), and `seconds` the time since the charge, which may depend on the rows. `when` is
    the time of the step, in UTC. `spender` is who spent the charge, if that was said or the
    database says it; of a refusal, who was said to spend it.
    """

    what: str
    budget: str | None
    name: str | None
    price: Loss
    number: int
    seconds: float | None = None
    refusal: str | None = None
    when: dt.datetime | None = None
    spender: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The event as plain values, for JSON."""
        price = (
            {"epsilon": self.price.epsilon} if self.price.rho is None else {"rho": self.price.rho}
        )
        when = None if self.when is None else self.when.isoformat()
        return {**self._asdict(), "price": {**price, "delta": self.price.delta}, "when": when}


@door
def on_release(callback: Callable[[Event], object]) -> Callable[[], None]:
    """Call a function at each step of each release of this process, for metrics.
    An error in it is logged, and no more.

    Input:  callback: a function of an event, which has `what` ("charged", "released", "failed",
            "stored" or "refused"), `budget`, `name`, `price`, `number`, `seconds`, `refusal`,
            `when` and `spender`
    Output: a function that takes the callback back

    >>> import polars as pl, dpframe as dp
    >>> seen = []
    >>> stop = dp.on_release(lambda event: seen.append((event.what, event.price.epsilon)))
    >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=dp.Budget(epsilon=1.0))
    >>> out = frame.count(max_rows=2).release(epsilon=0.25)
    >>> stop()
    >>> seen
    [('charged', 0.25), ('released', 0.25)]
    """
    if not callable(callback):
        raise InvalidArgument("on_release: give a function of one argument, dp.on_release(print).")
    _CALLBACKS.append(callback)
    return lambda: _CALLBACKS.remove(callback) if callback in _CALLBACKS else None


def announce_refusal(account: object, price: Loss, name: str | None, refusal: Exception) -> None:
    """Log that an account refused a charge, and call the callbacks. It is a warning.

    Bound:  no row was read for this release: the refusal follows from its question, its price and
            the ledger, all of which its reader has. Of the error only its class is told
    """
    kind = type(refusal).__name__
    budget, spender = (getattr(account, said, None) for said in ("name", "spender"))
    event = Event("refused", budget, name, price, 0, None, kind, dt.datetime.now(dt.UTC), spender)
    copy_context().run(_tell, event, f"refused {price}: {kind}")


def announce(what: str, account: object, receipt: Receipt, name: str | None, words: str) -> None:
    """Log a step of a release, and call the callbacks."""
    budget = getattr(account, "name", None)  # an account of somebody else may have none
    now = dt.datetime.now(dt.UTC)
    since = None if what in ("charged", "stored") else (now - receipt.when).total_seconds()
    event = Event(
        what, budget, name, receipt.loss, receipt.number, since, None, now, receipt.spender
    )
    copy_context().run(_tell, event, words)


def _tell(event: Event, words: str) -> None:
    """Log an event and call the callbacks: in a context of their own, so that
    they change none of the release's.
    """
    title = ", ".join(text for text in (event.budget, event.name) if text is not None)
    title = title or (f"#{event.number}" if event.number else "a release")
    level = logging.INFO if event.refusal is None else logging.WARNING
    LOG.log(level, "%s: %s", visible(title), visible(words), extra={"dpframe": event.to_dict()})
    for callback in [*_CALLBACKS]:
        try:
            callback(event)
        except Exception:
            LOG.exception("A callback of dp.on_release failed.")
