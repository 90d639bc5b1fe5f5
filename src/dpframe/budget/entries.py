"""What a budget's book holds: entries that are only ever added, each sealed with the hash of the one before."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpframe.budget.losses import Loss

__all__ = ["GENESIS", "Charge", "Entry", "canonical", "loss_of", "sealed", "units_of"]

GENESIS = "0" * 64  # the hash before the first entry


class Charge(NamedTuple):
    """One line of a budget's history: when (UTC), for what, its price, and whether its table was stored.

    `status` is "released" once the table is stored with the charge, and "pending" before: the release is running, or
    it failed or crashed after it was paid.
    """

    when: dt.datetime
    query: str
    epsilon: float
    delta: float
    rho: float | None = None
    name: str | None = None
    status: str = "pending"
    number: int = 0


@dataclass(frozen=True)
class Entry:
    """One line of a book. `kind` is "open" (the limits), "charge" or "result" (the table of a charge, by number)."""

    number: int
    kind: str
    at: str
    body: Mapping[str, Any]
    hash: str

    @property
    def when(self) -> dt.datetime:
        """When it was written, in UTC."""
        return dt.datetime.fromisoformat(self.at)

    @property
    def about(self) -> int | None:
        """The number of the charge that a result completes."""
        return self.body.get("about")

    @property
    def name(self) -> str | None:
        """The name of a charge's release."""
        return self.body.get("name")


def canonical(value: Any) -> str:
    """JSON with one spelling for one value, so that equal things have equal hashes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sealed(previous: str, number: int, kind: str, at: str, body: Mapping[str, Any]) -> Entry:
    """An entry that follows the one with hash `previous`.

    >>> first = sealed(GENESIS, 1, "open", "2026-01-01T00:00:00+00:00", {"accountant": "basic"})
    >>> sealed(first.hash, 2, "charge", first.at, {}).hash == sealed(GENESIS, 2, "charge", first.at, {}).hash
    False
    """
    text = canonical([previous, number, kind, at, body])
    return Entry(number, kind, at, body, hashlib.sha256(text.encode()).hexdigest())


def units_of(loss: Loss) -> dict[str, str | None]:
    """A loss in whole units, as texts, which hold integers of any size."""
    rho = None if loss.rho_units is None else str(loss.rho_units)
    return {"epsilon": str(loss.epsilon_units), "delta": str(loss.delta_units), "rho": rho}


def loss_of(units: Mapping[str, str | None]) -> Loss:
    """A loss from whole units."""
    rho = units["rho"]
    return Loss(int(units["epsilon"] or 0), int(units["delta"] or 0), None if rho is None else int(rho))
