"""The privacy statement of a release, as text, HTML and JSON.

It follows the disclosure items of NIST SP 800-226, "Guidelines for Evaluating Differential Privacy
Guarantees" (2025): the parameters and what they are about, the unit of privacy and the neighbour
relation, the mechanisms and how sensitivity is bounded, utility and bias, the trust model, and what
the guarantee does not cover.
"""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib import metadata
from typing import Any

from dpframe.budget import Loss, canonical, loss_json
from dpframe.fields import FieldDict, Fields
from dpframe.noise import bits
from dpframe.plan import Derivation, policy_words, render_html, render_text
from dpframe.plan.columns import Lock
from dpframe.release.shown.registry import registry_entry
from dpframe.safe_text import visible
from dpframe.theory.formulas.loss import ROUNDS, zcdp_to_epsilon
from dpframe.usage import Hints

STEPS = ("step", "one_unit_has", "known")
MECHANISMS = ("column", "aggregate", "mechanism", "scale", "threshold")
DELTAS = (1e-6, 1e-9)  # the values of δ at which a loss in ρ is also stated in ε

# Sentences of the statement about post-processing of a released table.
NOTHING_TO_CHANGE = {
    "nonnegative": "nonnegative(): this release has no counts, nor sums of values that cannot be "
    "negative, so there is nothing to change.",
    "round": "round(): this release has no counts or sums, so there is nothing to change. Decimals "
    "are rounded in the table: out.table.round(2).",
}
APART = (
    "This table was changed by itself. It no longer agrees with the other tables of its release: "
    "totals that they share can differ."
)
CHANGED_ALONE = (
    "{verb}(): this is one of {number} {tables} that agree where they share columns. A table that "
    "is changed by itself no longer agrees with the others: a total here can differ from the same "
    "total there. Change all of them together, out.{verb}(), or publish this one alone; its "
    "report() says that it was changed."
)
CHANGES = {
    "nonnegative": "the nearest table without negative numbers that keeps its totals",
    "round": "integers that still add up",
}

TRUST = (
    "Central model: the rows are read by the process that releases the table, and the people in "
    "them trust it and whoever runs it. Only the released table, its statement and the budget's "
    "history are protected outputs."
)
IMPLEMENTATION = (
    "Totals are exact integers on a grid that depends on the bounds alone. Noise is drawn exactly "
    "by certified inversion from the operating system's randomness, rounded to the grid; every ε, "
    "δ, ρ, scale and threshold is rounded in the safe direction."
)
UNKNOWN = "Its size is unknown, not zero; it"
BIAS = (
    "Limits and bounds leave out what is beyond them: rows and totals of a unit over its limits "
    "are weighted down, values are clipped. That is a bias which the errors above do not include. "
    f"{UNKNOWN} is larger for people and groups who have more rows or larger values. Keys found in "
    "the data are left out when few units have them. A mean of few values is drawn to the middle "
    "of its bounds, which its interval counts."
)
SHARED = (
    "{names}: the noises of different groups share a part. The errors stated here are those of "
    "single groups. The shared part cancels in the difference of two groups, and adds up in a sum "
    "over groups: a sum of these numbers has a larger error than with independent noise. If sums "
    "matter, type noise='laplace' or noise='gaussian'."
)
PAIRED = (
    "paired_laplace: a sum and the count of its values are measured together, as weight · count + "
    "sum and weight · count - sum. On each there are two independent Laplace noises of its scale, "
    "the same two; both together cost ε = l1 / scale of the sum."
)
JOINT = (
    "joint_laplace: a number that follows from such a pair and from numbers measured with it, "
    "such as the number of rows from the count of values and the number of missing values. Its "
    "noise is a sum of Laplace noises, and ε is that of the pair."
)
TOGETHER = (
    "window, cube: numbers of one group that share a noise, as one person moves them together. "
    "Each has an error of its own as stated; the errors of several are not independent. All of "
    "them together cost what is stated once."
)
CHOSEN = (
    "permute_and_flip, exponential: a choice among candidates, which are scored by rows; one that "
    "is worse by `scale` rows is e times rarer."
)
_SHARING = frozenset({"elliptic", "k_norm"})
_ABOUT_LAWS = {
    PAIRED: {"paired_laplace"},
    JOINT: {"joint_laplace"},
    TOGETHER: {"window", "cube"},
    SHARED: _SHARING,
    CHOSEN: {"permute_and_flip", "exponential"},
}
NOT_COVERED = (
    "Running time and memory use, which can depend on the rows.",
    "An analyst who runs hostile code in the same process.",
    "Collection, storage and access to the raw rows, and other releases about the same people "
    "that are not paid from this budget.",
    "Facts about groups or the population: these are what a release is for.",
)
_FIXED = "Made in a test: the noise was fixed (dpframe.testing), so this table protects nobody."
_FAR = math.log(1e6)  # odds that are not told apart above


def fixed_words(*, fixed: bool | None = None) -> dict[str, str]:
    """Words of a statement about fixed noise; by default whether it is fixed now.
    Empty for noise that is not.
    """
    return {"test": _FIXED} if (bits.are_told() if fixed is None else fixed) else {}


def completed(
    csv: str | None, stored: Fields, statement: Fields, *, drawn: str, question: int = 0
) -> FieldDict:
    """A certificate as it was stored with the charge, with what is known of the released table.

    Input:  csv: the table as it is written to files
    """
    table = {
        "sha256": sha256((csv or "").encode()).hexdigest(),
        "changed": statement.get("post_processing", []),
    }
    about = {"question": question, "table": table, "drawn": drawn[:10]}
    versions = statement["implementation"]["versions"]
    # with sorted keys
    whole: FieldDict = json.loads(canonical({**stored, **about, "versions": versions}))
    return whole


def statement(
    why: Derivation,
    relation: str,
    unit: str,
    noise: Sequence[Fields],
    cost: Loss,
    account: Fields,
    *,
    name: str | None,
    drawn: str,
    batch: int = 1,
) -> FieldDict:
    """The statement of a release as JSON, written when the noise is drawn.
    Nothing in it depends on rows.

    Input:  why: the derivation; relation and unit: neighbour relation and unit in words; noise: a
            row for each noisy total; cost: the loss that was charged; account: accountant, limit
            and remaining; name; drawn: when the noise was drawn (UTC); batch: how many queries were
            charged together
    """
    return {
        **fixed_words(),
        "standard": "NIST SP 800-226",
        "name": name,
        "drawn": drawn,
        "guarantee": {
            "kind": _kind(cost),
            **loss_json(cost),
            "implies": _implied(cost),
            "charged_for_queries": batch,
        },
        "unit_of_privacy": unit,
        "neighbours": {"relation": relation, "meaning": why.title},
        "bounds": [_step(typed, row) for typed, row in zip(why.typed, why.steps, strict=True)],
        **({"policies": [_policy(lock) for lock in why.policies]} if why.policies else {}),
        "keys": why.keys,
        "sensitivity": [dict(zip(why.MEASURES, row, strict=True)) for row in why.totals],
        "mechanisms": [dict(row) for row in noise],
        "budget": dict(account),
        "trust_model": TRUST,
        "implementation": {"how": IMPLEMENTATION, "versions": dict(versions())},
        "bias": BIAS,
        "not_covered": list(NOT_COVERED),
    }


def _policy(lock: Lock) -> FieldDict:
    """A policy file as JSON: its name and hash, those of its files
    of keys, its reasons and caps.
    """
    caps = {name: cap._asdict() for name, cap in lock.caps.items()}
    said = {"files": dict(lock.files), "because": dict(lock.because), "caps": caps}
    words = {"words": policy_words(lock)}
    return {
        "file": lock.file,
        "sha256": lock.sha256,
        **{name: value for name, value in said.items() if value},
        **words,
    }


def _step(typed: str, row: Sequence[str]) -> dict[str, str]:
    """A step with all values of its lists.
    If lists are long, `shown` has a shortened line for readers.
    """
    step = dict(zip(STEPS, row, strict=True))
    return step if typed == step["step"] else {**step, "step": typed, "shown": step["step"]}


@cache
def versions() -> Mapping[str, str]:
    """Versions of Python and of the packages that computed a release."""
    numbers = {"python": platform.python_version()}
    for package in ("dpframe", "polars", "narwhals", "numpy", "python-flint"):
        try:
            numbers[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            numbers[package] = "unknown"
    return numbers


def _kind(cost: Loss) -> str:
    if cost.rho is not None:
        return "zero-concentrated differential privacy" + (
            ", approximate (with δ)" if cost.exact_delta else ""
        )
    return (
        "approximate differential privacy (ε, δ)"
        if cost.exact_delta
        else "pure differential privacy (ε)"
    )


def _implied(cost: Loss) -> list[dict[str, float]]:
    """The (ε, δ) that a loss in ρ implies, at each δ of `DELTAS`; empty for a loss in ε."""
    if not cost.rho:
        return []
    return [{"epsilon": zcdp_to_epsilon(cost.rho, d), "delta": d + cost.delta} for d in DELTAS]


class Report(Hints, str):
    """A privacy statement: a text, which shows as HTML in a notebook and is JSON for machines.

    `items` is the statement as plain values; `errors` has (column, 95% margin of error).
    """

    __slots__ = ("errors", "items")
    items: Fields
    errors: tuple[tuple[str, str], ...]

    def __new__(cls, items: Fields, errors: tuple[tuple[str, str], ...] = ()) -> Report:
        """The text, from the statement's values."""
        report = super().__new__(cls, visible(_text(items, errors), keep="\n"))
        report.items, report.errors = items, errors
        return report

    def __dir__(self) -> list[str]:
        return [name for name in vars(Report) if not name.startswith("_")]

    def __getnewargs__(self) -> Any:
        return self.items, self.errors

    def to_dict(self) -> FieldDict:
        """The statement as plain values."""
        return {**self.items, "error_95": dict(self.errors)}

    def to_json(self) -> str:
        """The statement as JSON, lists in full."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_registry(self, **typed: Any) -> str:
        """The statement as an entry of the public registry of deployments, in YAML,
        to be completed and submitted.

        Input:  typed: what only people know, by name: `name`, `curator`, `curator_type`,
                `description`, `intended_use`, `region`, `sector`, and a list of `authors`; what is
                left out is marked "fill in"
        Errors: InvalidArgument for another name

        >>> import polars as pl, dpframe as dp
        >>> frame = pl.DataFrame({"user": [1, 1, 2]}).dp(unit="user", budget=dp.Budget(epsilon=1.0))
        >>> report = frame.count(max_rows=2).release(epsilon=0.5).report()
        >>> [
        ...     line.strip()
        ...     for line in report.to_registry(name="Visits").splitlines()
        ...     if "epsilon" in line
        ... ]
        ['epsilon: 0.5']
        """
        return registry_entry(self.items, typed)

    def to_html(self) -> str:
        """The statement as HTML, without scripts or links; everything in it is escaped."""
        parts = [
            "<div class='dpframe'><h3>Privacy statement</h3>",
            f"<p>{escape(in_a_sentence(self.items))}</p>",
        ]
        for title, body in _sections(self.items, self.errors):
            parts.append(f"<h4>{escape(title)}</h4>")
            parts += [
                f"<p>{escape(p)}</p>" if isinstance(p, str) else render_html(*p) for p in body
            ]
        return "".join([*parts, "</div>"])

    _repr_html_ = to_html

    def __repr__(self) -> str:
        return str(self)


def _text(items: Fields, errors: tuple[tuple[str, str], ...]) -> str:
    lines = ["PRIVACY STATEMENT", in_a_sentence(items)]
    for title, body in _sections(items, errors):
        lines.append(
            "\n".join([title, *(p if isinstance(p, str) else render_text(*p) for p in body)])
        )
    return "\n\n".join(lines)


def in_a_sentence(items: Fields) -> str:
    """The meaning of the loss for one unit, for people to whom ε says nothing.

    Input:  items: a statement as JSON, of which guarantee and neighbours are read
    Bound:  with ε alone the odds of one of two neighbouring tables to the other change by at most
            e^ε. With (ε, δ) a guess between them, either as likely as the other beforehand, is
            right with probability at most (e^ε + δ) / (1 + e^ε); a loss in ρ has several pairs, and
            the least bound. Both are rounded up
    Source: Wasserman, Zhou 2010, arXiv:0811.2501; Kairouz, Oh, Viswanath 2015, arXiv:1311.0776

    >>> in_a_sentence({"guarantee": {"epsilon": 1.0, "delta": 0.0}, "neighbours": {}}).partition(
    ...     ". "
    ... )[0][46:]
    'cannot raise their odds that a person is in it by more than 2.72 times'
    """
    if "test" in items:
        return str(items["test"])
    loss = items["guarantee"]
    in_epsilon = "epsilon" in loss
    others = items["neighbours"].get("relation") == "replace"
    asked = "that a person's rows are these and not others" if others else "that a person is in it"
    if in_epsilon and not loss["delta"]:
        odds = math.ceil(100 * math.exp(min(loss["epsilon"], _FAR))) / 100
        bound = f"cannot raise their odds {asked} by more than {odds:,.2f}"
        said = (
            f"{bound if loss['epsilon'] < _FAR else f'may raise their odds {asked} a million'} "
            "times"
        )
    else:
        pairs = (
            [loss] if in_epsilon else loss["implies"] or [{"epsilon": 0.0, "delta": loss["delta"]}]
        )
        right = min(
            (1 + x["delta"] * math.exp(-x["epsilon"])) / (1 + math.exp(-x["epsilon"]))
            for x in pairs
        )
        asked = "which of two sets of rows a person has" if others else "whether a person is in it"
        share = math.ceil(1000 * min(right, 1.0)) / 10
        said = f"guesses {asked} right in at most {share:g}% of tries, where a coin is right in 50%"
    return (
        f"Whoever knows everything else about the table {said}. Here a person is one unit of "
        "privacy, see below."
    )


def _numbers_sections(
    items: Fields, errors: tuple[tuple[str, str], ...]
) -> list[tuple[str, list[Any]]]:
    """The sections about the noise: what it hides, what it is, what it cost and what it leaves."""
    budget, mechanisms = items["budget"], items["mechanisms"]
    remaining, limit = (loss_words(budget[key]) for key in ("remaining", "limit"))
    left = budget.get("words") or f"After this release {remaining} of {limit} remains."
    measures = Derivation.MEASURES, _rows(items["sensitivity"], Derivation.MEASURES)
    margins = ("column", f"95% margin of error ({items.get('intervals', 'noise only')})"), errors
    noise = MECHANISMS, _rows(mechanisms, MECHANISMS)
    useful = margins if errors else "No number with a margin of error was released."
    return [
        ("Sensitivity: how far one unit moves each total", [measures]),
        ("Mechanisms", [noise, *_about_mechanisms(mechanisms), *_about_keys(mechanisms)]),
        ("Budget", [f"Accountant {budget['accountant']}. {left}", *_about_failures(budget)]),
        ("Utility", [useful, *items.get("shown", []), *items.get("mostly_noise", [])]),
    ]


def _sections(items: Fields, errors: tuple[tuple[str, str], ...]) -> list[tuple[str, list[Any]]]:
    """The sections of the statement: each has a title, and paragraphs and tables."""
    guarantee = items["guarantee"]
    implied = [
        f"This implies ε = {x['epsilon']:.4g} at δ = {x['delta']:.2g}."
        for x in guarantee["implies"]
    ]
    together = guarantee["charged_for_queries"]
    batch = (
        [f"It was charged once for {together} queries released together."] if together > 1 else []
    )
    name = f", under the name {items['name']!r}" if items["name"] else ""
    origin, found = (
        [items[key] for key in keys if key in items]
        for keys in (("corrects", "superseded", "stored"), ("found",))
    )
    versions = ", ".join(f"{k} {v}" for k, v in sorted(items["implementation"]["versions"].items()))
    steps = [{**row, "step": row.get("shown", row["step"])} for row in items["bounds"]]
    return [
        (
            "Guarantee",
            [f"Privacy loss: {loss_words(guarantee)}: {guarantee['kind']}.", *implied, *batch],
        ),
        (
            "Drawn",
            [
                f"{items['drawn'][:19].replace('T', ' ')} UTC{name}. Reading it again draws "
                "nothing.",
                *origin,
            ],
        ),
        ("Unit of privacy", [items["unit_of_privacy"], items["neighbours"]["meaning"]]),
        *_optional(
            items, "policies", "Policy", lambda policies: [policy["words"] for policy in policies]
        ),
        (
            "Bounds, and where each comes from",
            [(Derivation.STEPS, _rows(steps, STEPS)), items["keys"], *found],
        ),
        *_optional(
            items, "chosen", "Chosen inside the release", lambda chosen: list(chosen["reason"])
        ),
        *_numbers_sections(items, errors),
        *_optional(items, "post_processing", "Post-processing", list),
        ("Bias", [items["bias"], *items.get("beyond", [])]),
        ("Trust model", [items["trust_model"]]),
        ("Implementation", [items["implementation"]["how"], versions]),
        ("Not covered", [f"- {line}" for line in items["not_covered"]]),
        ("Standard", [f"Items as in {items['standard']}."]),
    ]


def _optional(
    items: Fields, key: str, title: str, said: Callable[[Any], list[Any]]
) -> list[tuple[str, list[Any]]]:
    """A section about what not every statement has."""
    return [(title, said(items[key]))] if key in items else []


def _about_failures(budget: Fields) -> list[str]:
    """A sentence about earlier releases of this budget that failed after the
    charge; older statements have none.
    """
    failed, unacknowledged = (
        budget.get("failures", {}).get(key, 0) for key in ("failed", "unacknowledged")
    )
    if not failed:
        return []
    number = "One earlier release" if failed == 1 else f"{failed} earlier releases"
    return [
        f"{number} from this budget failed after the charge ({failed - unacknowledged} "
        "acknowledged). Whether a release fails may depend on a row, and no noise hides that: it "
        "is not part of the privacy loss above."
    ]


def _about_mechanisms(mechanisms: Sequence[Fields]) -> list[str]:
    """A sentence for pairs that are measured together, for noises that
    share a part, and for choices.
    """
    labels = {row["mechanism"] for row in mechanisms}
    names = ", ".join(row["column"] for row in mechanisms if row["mechanism"] in _SHARING)
    return [words.format(names=names) for words, laws in _ABOUT_LAWS.items() if labels & laws]


def _about_keys(mechanisms: Sequence[Fields]) -> list[str]:
    """A sentence about the rule that selected keys from the data; empty if keys were listed."""
    row = next((row for row in mechanisms if row["threshold"] is not None), None)
    if row is None:
        return []
    column, threshold = row["column"], row["threshold"]
    match row["mechanism"]:
        case "truncated_geometric":
            rule = "the optimal rule (truncated_geometric)"
            how = (
                f"where {column!r} is {threshold} a group is as likely released as not, and "
                "likelier where it is more"
            )
        case "gaussian_rounds":
            rule = f"noisy weights in {ROUNDS} rounds (gaussian_rounds)"
            how = (
                f"after the last round a key is released where the mean of its noisy {column!r} "
                f"over the rounds is at least {threshold}; after earlier rounds it needs more"
            )
        case _:
            rule, how = (
                "a noisy count",
                f"a group is released where {column!r} with its noise is at least {threshold}",
            )
    return [f"Keys were found by {rule}: {how}."]


def loss_words(loss: Fields) -> str:
    """A loss as JSON in words: `ε = 1, δ = 1e-06`."""
    main = f"ρ = {loss['rho']:g}" if "rho" in loss else f"ε = {loss['epsilon']:g}"
    return main + (f", δ = {loss['delta']:g}" if loss["delta"] else "")


def _rows(table: Sequence[Fields], columns: Sequence[str]) -> list[list[Any]]:
    """Rows in the order of the columns; a stored statement may have another order."""
    return [[row.get(column) for column in columns] for row in table]
