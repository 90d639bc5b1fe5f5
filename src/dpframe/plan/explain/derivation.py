"""The derivation of a query as text and as HTML: line by line, what one unit can have, and why."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest

from dpframe.fields import Names
from dpframe.plan.allotments import Allotment
from dpframe.plan.columns import Auto, Column, ColumnDefaults, Limits, Lock, Table
from dpframe.plan.declared import facts_of
from dpframe.plan.explain.beyond import Beyond, beyond, of_nobody, of_rows
from dpframe.plan.explain.sentences import released_groups
from dpframe.plan.grid import Product
from dpframe.plan.question import Question
from dpframe.plan.scalars import counted, moment, number
from dpframe.plan.steps import Filter, Rows, Step, lineage, source_of
from dpframe.plan.tables import titled
from dpframe.plan.totals import Total, TotalKind
from dpframe.plan.types import TIMES, kind, show
from dpframe.safe_text import visible
from dpframe.theory.formulas.loss import ROUNDS
from dpframe.theory.formulas.sensitivity import Relation
from dpframe.usage import Hints


@dataclass(frozen=True)
class Derivation(Hints):
    """The derivation of each noisy total's sensitivity from the steps;
    prints as text, and as HTML in a notebook.

    `steps` has (line, what one unit has after it, what is known of the columns it wrote); `keys`
    says which groups appear; `totals` has (name, total, bounds and where they come from, l0, l1,
    l2, linf); `typed` has the lines of `steps` with all values of their lists, of which people are
    shown a few. `words` has (column, what it is, as people say it), and `where` the conditions of
    the filters. `work` says on Spark what a release does there. `policies` are the policy files
    that the rows are under. `beyond` says of each released column what limits and bounds do to it,
    and `rows` which rows are not counted, or counted more than once.
    """

    title: str
    steps: tuple[tuple[str, str, str], ...]
    keys: str
    totals: tuple[Names, ...]
    typed: Names
    words: tuple[tuple[str, str], ...] = ()
    where: Names = ()
    work: str = ""
    policies: tuple[Lock, ...] = ()
    beyond: tuple[Beyond, ...] = ()
    rows: Names = ()

    STEPS = ("step", "one unit has", "known of the columns")
    MEASURES = ("noisy total", "made of", "bounds", "l0", "l1", "l2", "linf")

    def __str__(self) -> str:
        tables = render_text(self.STEPS, self.steps), render_text(self.MEASURES, self.totals)
        policies = map(policy_words, self.policies)
        parts = [
            self.title,
            *policies,
            tables[0],
            self.keys,
            tables[1],
            *([self.work] if self.work else []),
        ]
        return "\n\n".join(visible(part, keep="\n") for part in parts)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return (
            f"<div class='dpframe'><p><b>{escape(self.title)}</b></p>"
            f"{''.join(f'<p>{escape(policy_words(lock))}</p>' for lock in self.policies)}"
            f"{render_html(self.STEPS, self.steps)}"
            f"<p>{escape(self.keys)}</p>{render_html(self.MEASURES, self.totals)}"
            f"{f'<p>{escape(self.work)}</p>' if self.work else ''}</div>"
        )


def derivation(question: Question, also: str = "") -> Derivation:
    """The derivation of a question, from source to sensitivities;
    `also` is a sentence to add about groups.
    """
    lines = _lines(question.step)
    steps = (*(line for _, line in lines), (asked(question), _at_ask(question), ""))
    full_lines = (*(line for line, _ in lines), asked(question))
    keys = f"{released_groups(question)}{_together(question)}{also and ' '}{also}"
    totals = tuple(_measure(question, p) for p in question.allotments)
    words = tuple((name, aggregate.words) for name, aggregate in question.aggregates)
    where = tuple(_condition(step) for step in lineage(question.step) if isinstance(step, Filter))
    locks = question.table.locks
    return Derivation(
        _title(question.step),
        steps,
        keys,
        totals,
        full_lines,
        words,
        where,
        policies=locks,
        beyond=beyond(question),
        rows=of_rows(question.step),
    )


def policy_words(lock: Lock) -> str:
    """A policy file in a sentence: its name, its hash, and the reasons that it states."""
    reasons = "".join(f" {name}: {reason}." for name, reason in lock.because.items())
    return (
        f"Policy: {lock.file}, sha256 {lock.sha256}. What is typed may only be stricter.{reasons}"
    )


def _condition(step: Filter) -> str:
    """The condition of a filter without the brackets around the whole of it: `age >= 18`."""
    text = step.shown.removeprefix("filter(").removesuffix(")")
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return text[1:-1] if letter == ")" and place == len(text) - 1 else text
    return text


def _together(question: Question) -> str:
    """The share of the price that several choices inside the
    release take together, after a space.
    """
    share, several = (
        float(question.chosen_share),
        len(question.open_bounds) + (question.auto is not None) >= 2,
    )
    if question.narrowing:
        return (
            f" Bounds are narrowed first, for {share:.0%} of the price; {1 - share:.0%} is for the "
            "answer."
        )
    if not several:
        return ""
    return (
        f" All that is chosen inside the release takes {share:.0%} of its price; {1 - share:.0%} "
        "is for the answer."
    )


def _lines(step: Step, indent: str = "") -> list[tuple[str, tuple[str, str, str]]]:
    """Each step's line in full, with its row of the explanation.

    Where another plan joins this one, its steps come before the joining step, indented.
    """
    lines = []
    for earlier in lineage(step):
        for other in earlier.others:
            lines += _lines(other, f"{indent}· ")
        row = (f"{indent}{earlier.shown}", _unit_rows(earlier), _columns_in_words(earlier))
        lines.append((f"{indent}{earlier.typed}", row))
    return lines


def describe(step: Step) -> tuple[str, list[tuple[str, str, str]]]:
    """A protected table in words: its unit, and its columns with type, bounds and keys.
    Never a row.
    """
    columns = [(name, show(c.domain.dtype), _known(c)) for name, c in step.table.columns.items()]
    return visible(f"{_title(step)} One unit has {_unit_rows(step)}."), columns


def _title(step: Step) -> str:
    table = step.table if step.table.unit else source_of(step).table
    relation = (
        "joins or leaves" if table.relation == Relation.ADD_REMOVE else "is exchanged for another"
    )
    nobody = of_nobody(step)
    return (
        f"Neighbouring tables: one {unit_words(table)} {relation} "
        f"({table.relation}).{nobody and ' '}{nobody}"
    )


def unit_words(table: Table) -> str:
    """The unit in words: what the people are called, or else the identifier
    columns, or the declared rows.
    """
    if table.people is not None:
        return f"person of {table.people!r}"
    names = ", ".join(f"'{name}'" for name, column in table.columns.items() if column.is_unit)
    if table.unit:
        return f"unit {names}" if names else "unit (its identifier travels hidden)"
    return f"person with at most {counted(table.declared or 0, 'row')}"


def _unit_rows(step: Step) -> str:
    table, unit = step.table, source_of(step).unit
    if isinstance(unit, Rows):
        exact, rows = "exactly" if table.exactly_one else "at most", table.declared or 0
        times = "" if rows == unit.max_rows else f", times {rows // unit.max_rows} by join"
        return f"{exact} {counted(rows, 'row')}, declared by dp.Rows({unit.max_rows}){times}"
    if table.single:
        return f"{'exactly' if table.exactly_one else 'at most'} 1 row, by per_unit"
    limits, defaults = limits_in_words(table.limits), limits_in_words(table.defaults)
    if defaults and not limits:
        return f"{defaults}, unless a question types others"
    return (
        f"{limits}, enforced by the question"
        if limits
        else "any number of rows until a limit is given"
    )


def limits_in_words(limits: Limits) -> str:
    """Limits of one unit, in words."""
    parts = []
    if limits.max_groups is not None:
        parts.append(f"at most {counted(limits.max_groups, 'group')}")
    if limits.max_rows_per_group is not None:
        parts.append(f"at most {counted(limits.max_rows_per_group, 'row')} in each")
    if limits.max_rows is not None:
        parts.append(f"at most {counted(limits.max_rows, 'row')}{' in all' if parts else ''}")
    return ", ".join(parts)


def _declared(question: Question) -> str:
    """Arguments of a question that are as the table declares them, after a
    semicolon; empty where there are none.
    """
    table, levels = question.table, () if question.keys is None else question.keys.levels
    given = vars(question.given).items()
    limits = {
        name: limit
        for name, limit in given
        if limit is not None and limit == getattr(table.defaults, name)
    }
    asked = vars(
        Limits(question.limits.max_rows) if not question.limits_groups else question.limits
    ).items()
    for lock in table.locks:
        limits |= {
            name: limit
            for name, limit in asked
            if limit is not None and limit == getattr(lock.limits, name)
        }
    limits |= (
        {"min_units": question.min_units}
        if question.min_units in (table.min_units, *_least(table))
        else {}
    )
    limits.pop("auto", None)
    limits = {name: limit for name, limit in limits.items() if limit is not None}
    facts = [(_said_in(table, name, limit), name) for name, limit in limits.items()]
    listed = [
        (table.columns[name].defaults, name, level)
        for name, level in zip(question.by, levels, strict=False)
    ]
    facts += [
        (d.origin_of("keys"), f"keys of {name!r}") for d, name, level in listed if d.keys == level
    ]
    facts += [fact for _, aggregate in question.aggregates for fact in facts_of(aggregate, table)]
    lines: dict[str, list[str]] = {}
    for origin, words in dict.fromkeys(facts):
        lines.setdefault(origin, []).append(words)
    return "".join(f"; declared by {origin}: {', '.join(words)}" for origin, words in lines.items())


def _least(table: Table) -> list[int | None]:
    """The fewest units of a group that policy files lock."""
    return [lock.min_units for lock in table.locks]


def _said_in(table: Table, name: str, limit: object) -> str:
    """The origin of a limit of a question: a policy file, or the line that declared it."""
    for lock in table.locks:
        said = (lock.min_units, lock.default_min_units)
        if limit in (
            said
            if name == "min_units"
            else (getattr(lock.limits, name), getattr(lock.defaults, name))
        ):
            return lock.file
    return ColumnDefaults().origin


def _at_ask(question: Question) -> str:
    return f"{_enforced(question)}{_declared(question)}"


def _enforced(question: Question) -> str:
    """The limits of one unit in a question, and what enforces them."""
    if question.table.declared is not None:
        return _unit_rows(question.step)
    limits = question.typed_limits if question.auto else question.limits
    own, words = _own_limits(question), _limits_at_ask(question, limits)
    if question.auto:
        choice = (
            f"chosen privately inside the release, for {float(question.limits_share):.0%} of its "
            "price"
        )
        return (f"{words}; limits within these {choice}" if words else f"limits {choice}") + own
    if own and all(
        total.limits is not None for output in question.outputs for _, total in output.totals
    ):
        return own.removeprefix("; ")
    return (
        f"{words}: enforced here by weights" if words else "counts once, however many rows it has"
    ) + own


def _limits_at_ask(question: Question, limits: Limits) -> str:
    """Limits in words, without the limits on groups that say nothing where there are none."""
    return limits_in_words(limits if question.limits_groups else Limits(limits.max_rows))


def _own_limits(question: Question) -> str:
    """The limits of columns that have some of their own, each after a
    semicolon; empty where none has.
    """
    names: dict[Limits, list[str]] = {}
    for output in question.outputs:
        limits = output.total.limits
        if limits is not None:
            names.setdefault(limits, []).append(output.name)
    return "".join(
        f"; for {', '.join(of)}: {_limits_at_ask(question, limits)}" for limits, of in names.items()
    )


def asked(question: Question) -> str:
    """The question as it was typed, without its limits."""
    verb = re.sub(r"(, )?(\w+=\.\.\., )*\{limit\}", "", question.verb)
    aggregates = ", ".join(f"{name}={aggregate.limited}" for name, aggregate in question.aggregates)
    if verb.startswith("group_by("):
        return f"{verb}.agg({aggregates})" if aggregates else f"{verb}.keys()"
    return f"agg({aggregates})" if verb.startswith("agg(") else verb


def _columns_in_words(step: Step) -> str:
    before = step.parent.table.columns if step.parent is not None else {}
    lines = []
    for name, column in step.table.columns.items():
        old = before.get(name)
        if step.parent is None or old is None or old != column:
            words = _known(column)
            words += "" if column.domain.nullable or step.parent is None else ", not missing"
            if words.strip(", "):
                lines.append(f"{name}: {words.strip(', ')}")
    return "; ".join(lines)


def _known(column: Column) -> str:
    """Known and declared facts of the values of a column."""
    domain, declared, parts = column.domain, column.defaults, []
    if domain.bounds is not None:
        times = kind(domain.dtype) in TIMES
        ends = ", ".join(number(moment(x, domain.dtype) if times else x) for x in domain.bounds)
        parts.append(f"in [{ends}]")
    if domain.keys is not None:
        parts.append(f"{counted(len(domain.keys), 'public key')}")
    if isinstance(declared.bounds, Auto):
        parts.append("clipped to bounds that each release chooses")
    elif declared.bounds is not None:
        parts.append(f"clipped to {declared.bounds} where it is asked")
    if declared.keys is not None:
        parts.append(f"{counted(len(declared.keys), 'declared key')}")
    return ", ".join(parts)


def _value_in_words(value: float, total: Total) -> str:
    """A value of a total's column, as a time where it is one."""
    assert total.column is not None
    dtype = total.column.domain.dtype
    return number(moment(value, dtype)) if kind(dtype) in TIMES else f"{value:g}"


def _measure(question: Question, allotment: Allotment) -> Names:
    total = allotment.total
    bound = total.sensitivity.scaled(total.unit)
    name, norms = ", ".join(allotment.names), (bound.l0, bound.l1, bound.l2, bound.linf)
    if total.merged:
        origin = "all cells" if total.merged == "total" else f"cells merged into {total.merged}"
        return (name, origin, "", *(f"{x:.6g}" for x in norms))
    made_of = (
        ("the groups that are suppressed, together", "")
        if total.collects
        else _made_of(question, total)
    )
    return (
        name,
        *made_of,
        *("to be chosen" if _open(question, total) else f"{x:.6g}" for x in norms),
    )


def _open(question: Question, total: Total) -> bool:
    """Whether the sensitivity depends on limits or bounds that the release is to choose."""
    return question.auto is not None or open_bounds_of(question, total) is not None


def open_bounds_of(question: Question, total: Total) -> Auto | None:
    """The dp.Auto that chooses the bounds of a total's column; None if they are not chosen."""
    choices = {question.table.columns[name].id: auto for name, auto in question.open_bounds.items()}
    return (
        None
        if total.column is None or total.of_different_values or total.kind == TotalKind.VALUES
        else choices.get(total.column.id)
    )


def _candidates_in_words(total: Total) -> str:
    """The candidates of a quantile: how many, and from where to where."""
    assert total.candidates is not None
    first, last = total.candidates.lower, total.candidates.upper
    return (
        f"{total.candidates.count} values from {_value_in_words(first, total)} to "
        f"{_value_in_words(last, total)}"
    )


_PRODUCTS = {
    Product.SQUARE: "squares of each person's sum",
    Product.CROSS: "each person's sum, times the rows below the limit",
    Product.SPREAD: "each person's sum, times its distance from the largest",
    Product.ROW_SPREAD: "each person's rows, times the rows below the limit",
    Product.INFLUENCE: "squares of each person's influence, clipped, with weights from the "
    "noisy totals",
    Product.BETWEEN: "each person's influence on one group times that on an earlier one, clipped",
}


def _made_of(question: Question, total: Total) -> tuple[str, str]:
    if total.kind == TotalKind.INTERACTION:
        by = f" by {titled(total.among)}, without what its margins say" if total.among else ""
        return f"rows{by}", ""
    if total.kind == TotalKind.KEY_WEIGHTS:
        return f"weights of units, in each of {ROUNDS} rounds", ""
    if total.moment is not None:
        of = "differences in the population" if total.between_groups else "the population"
        return _PRODUCTS[total.moment.product], f"for intervals of {of}"
    if total.column is None:
        return total.kind, ""
    names = question.table.names_by_id
    column, others = names.get(total.column.id, ""), [names.get(c.id, "") for c in total.present]
    where = (
        f", where {' and '.join(others)} {'is' if len(others) == 1 else 'are'} present"
        if others
        else ""
    )
    if total.kind == TotalKind.VALUES:
        return f"values of {' and '.join([column, *others])}", ""
    if total.of_different_values:
        return (
            f"different values of {column}",
            "null is none of them" if total.column.domain.nullable else "",
        )
    if total.values:
        number = f"the {total.rounds} most frequent" if total.rounds > 1 else "one"
        no_null = (
            ", null is none" if total.column.domain.nullable and None not in total.values else ""
        )
        return (
            f"rows at each value of {column}",
            f"{number} of {len(total.values)} listed values{no_null}",
        )
    auto = open_bounds_of(question, total)
    if auto is not None:
        what = (
            total.computed.noun
            if total.computed
            else "rank"
            if total.candidates is not None
            else "sum"
        )
        return (
            f"{what} of {column}",
            f"chosen privately inside the release, for {float(auto.share):.0%} of its price",
        )
    if total.is_tree:
        points = ", ".join(_value_in_words(cut, total) for cut in total.cuts) or "the bounds"
        over = f"parts cut at {points}" if total.candidates is None else _candidates_in_words(total)
        return f"rows of {column} in blocks of a tree, one level", f"over {over}"
    if total.candidates is not None:
        reach = (
            ""
            if total.ci is None
            else f"; and a distance that reaches the true one (ci={total.ci:g})"
        )
        return f"rank of {column}", f"one of {_candidates_in_words(total)}{reach}"
    return _sum_made_of(question, total, where)


def _sum_made_of(question: Question, total: Total, where: str) -> tuple[str, str]:
    """A sum of a column, of products or of a computed number;
    `where` says which columns must be present.
    """
    assert total.column is not None
    names = question.table.names_by_id
    column, grid = names.get(total.column.id, ""), total.grid
    low, high = map(float, grid.ends)
    centre = f", measured from {_value_in_words(float(grid.centre), total)}" if grid.centre else ""
    origin = total.column.domain.origin
    by = "by the question"
    if origin and total.kind == TotalKind.SUM:
        by = f"by {origin} and {by}"
    what = "totals of one unit" if total.kind == TotalKind.UNIT_SUM else "values"
    ends = f"[{_value_in_words(low, total)}, {_value_in_words(high, total)}]"
    if total.multiplies:
        column = "·".join(
            f"({names.get(f.column.id, '')} - {float(f.about):g})" for f in total.factors
        )
    if total.computed is not None:
        column = total.computed.formula.format(
            column=column, about=_value_in_words(float(total.about), total)
        )
        what, ends, centre = (
            total.computed.noun,
            f"[{low:g}, {high:g}]",
            f", measured from {float(grid.centre):g}",
        )
    return f"sum of {column}{centre}{where}", f"{what} in {ends}, enforced {by}"


def _cell(value: object, digits: str) -> str:
    """A cell as text: nothing for null, and a float with few digits."""
    return "" if value is None else f"{value:{digits}}" if isinstance(value, float) else str(value)


def render_text(header: Sequence[str], rows: Iterable[Sequence[object]], digits: str = "g") -> str:
    """A table in plain text.
    In a terminal, cells are wrapped where the table would be wider than it is.
    """
    table = [tuple(visible(_cell(value, digits)) for value in row) for row in (header, *rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(header))]
    room = (
        shutil.get_terminal_size().columns - 2 * len(widths) + 2
        if sys.stdout.isatty()
        else sum(widths)
    )
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    lines = [line for row in table for line in _wrapped(row, widths)]
    head = len(_wrapped(table[0], widths))
    return "\n".join([*lines[:head], "  ".join("─" * width for width in widths), *lines[head:]])


def _wrapped(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    """A row of a table as lines of text."""
    fitted = zip(row, widths, strict=True)
    cells = [textwrap.wrap(cell, width) if len(cell) > width else [cell] for cell, width in fitted]
    lines = zip_longest(*cells, fillvalue="")
    return [
        "  ".join(part.ljust(width) for part, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


_NARROWEST = 12  # characters of a column that is wrapped


def render_html(header: Sequence[str], rows: Iterable[Sequence[object]], digits: str = "g") -> str:
    """A table in HTML, everything escaped."""
    style = "style='text-align:left;padding:.15em .6em'"
    head = "".join(f"<th {style}>{escape(h)}</th>" for h in header)
    lines = (
        "".join(f"<td {style}>{escape(_cell(value, digits))}</td>" for value in row) for row in rows
    )
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
