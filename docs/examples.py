"""Runs every example of the site and the README:
the ```python blocks of a page, in order, in one namespace.

    python docs/examples.py # what differs from the pages, which is nothing python docs/examples.py
    --write # puts what examples print, and their pictures, into docs/ python docs/examples.py
    --write start # of pages whose path has this in it

A block that ends in an expression shows its value, as in a notebook. What follows the block says
how it is compared:

- ```output must be what was printed, up to white space, whatever the noise: no released number can
  stand there.
- ```noisy must be what is printed with the noise that the page was written with; every number may
  be another one.
- ```python raises must end in an error of dpframe; what is shown is its name and message.

Where a page has tabs (`pandas`, `Polars`), it is run once for each. Every run is in a folder of its
own.
"""

from __future__ import annotations

import argparse
import ast
import colorsys
import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
import textwrap
import traceback
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from dpframe.budget.ledger.store import TEST
from dpframe.errors import DpFrameError, DpFrameWarning
from dpframe.noise import bits

DOCS = Path(__file__).parent
README = DOCS.parent / "README.md"
WIDTH = 88  # characters of an error message in a line
_IN_CELLS = "#ffffff", "#22303c", "#e4e4e4", "#c4c4c4"  # colours of heatmaps
_PHONE = 350  # the width of a picture on a phone (pixels)
_FENCE = re.compile(r"(\s*)(`{3,})(\w+)?(.*)")
_NUMBER = re.compile(r"[-+−]?\d[\d,]*\.?\d*(e[-+]?\d+)?")


class FailedExampleError(Exception):
    """An example that raises, or does not raise what the page says."""


@dataclass
class Block:
    """A python block, and the place of what is shown below it."""

    tab: str | None
    line: int  # of its first line of code, from 1
    code: str
    raises: bool
    shown: str | None = None
    kind: str = ""
    span: tuple[int, int] = (0, 0)  # lines of what is shown, as a slice


@dataclass
class Page:
    """A page, and what its examples print."""

    path: Path
    lines: list[str]
    blocks: list[Block] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The path below docs/, or README.md."""
        return (
            self.path.name
            if self.path == README
            else self.path.relative_to(DOCS).as_posix()
        )

    @property
    def tabs(self) -> list[str | None]:
        """The tabs that code stands in; one run for each."""
        return [
            tab for tab in dict.fromkeys(block.tab for block in self.blocks) if tab
        ] or [None]


def pages() -> list[Page]:
    """Every page that has code, and the README."""
    found = [read(path) for path in [README, *sorted(DOCS.rglob("*.md"))]]
    return [page for page in found if page.blocks]


def read(path: Path) -> Page:
    """A page with its blocks."""
    page = Page(path, path.read_text("utf-8").split("\n"))
    tab, at, last = None, 0, None
    while at < len(page.lines):
        line = page.lines[at]
        item = re.fullmatch(r"\s*:{3,}\{tab-item\} (.+)", line)
        if item:
            tab, last = item[1].strip(), None
        elif re.fullmatch(r"\s*:{4,}", line):
            tab, last = None, None
        fence = _FENCE.fullmatch(line)
        if fence is None:
            if line.strip() and not line.strip().startswith(":"):
                last = None  # output stands right below its code
            at += 1
            continue
        end = next(
            i
            for i in range(at + 1, len(page.lines))
            if page.lines[i].strip() == fence[2]
        )
        body = textwrap.dedent("\n".join(page.lines[at + 1 : end]))
        if fence[3] == "python":
            last = Block(tab, at + 2, body, "raises" in fence[4].split())
            page.blocks.append(last)
        elif fence[3] in ("output", "noisy"):
            if last is None:
                raise ValueError(
                    f"{path}:{at + 1}: no example stands right above this output"
                )
            last.shown, last.kind, last.span = body, fence[3], (at + 1, end)
            last = None
        else:
            last = None
        at = end + 1
    return page


def stream(name: str) -> Any:
    """Random words that follow from a name."""
    calls = iter(range(1 << 62))

    def words(count: int) -> np.ndarray:
        raw = hashlib.shake_256(f"{name} {next(calls)}".encode()).digest(8 * count)
        return np.frombuffer(raw, dtype="<u8").astype(np.uint64)

    return words


@contextlib.contextmanager
def apart(name: str) -> Iterator[Path]:
    """A folder of its own and noise that follows from a name."""
    before = Path.cwd()
    token = mock.patch(
        "secrets.token_hex",
        lambda size: hashlib.shake_256(name.encode()).hexdigest(size),
    )
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        bits.substitute(stream(name)),
        mock.patch(
            "dpframe.budget.ledger.store.new_id",
            side_effect=lambda: f"{TEST}{uuid.uuid4().hex}",
        ),
        token,
    ):
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def run(
    page: Page, tab: str | None, noise: str, pictures: bool = False
) -> list[tuple[Block, str]]:
    """Run a page in one of its tabs; what each of its blocks printed."""
    with apart(f"{page.name} {tab} {noise}") as folder:
        names: dict[str, Any] = {"__name__": "__main__"}
        printed = [
            (block, _run(page, block, names))
            for block in page.blocks
            if block.tab in (None, tab)
        ]
        if pictures:
            for picture in sorted(folder.glob("*.svg")):
                draw(picture, page)
    return printed


def _for_phones(page: Page) -> None:
    """Draw the pictures of a page once more, with the same noise, as wide as a phone:
    `docs/extensions/pictures.py`.
    """
    from dpframe.release.shown.charts.look import Look

    usual = Look.__init__

    def narrow(look: Look, title: Any, wide: int | None, *more: Any) -> None:
        usual(look, title, wide or _PHONE, *more)

    with apart(f"{page.name} {page.tabs[0]} written") as folder:
        names: dict[str, Any] = {"__name__": "__main__"}
        Look.__init__ = narrow  # type: ignore[method-assign]
        try:
            for block in page.blocks:
                if block.tab in (None, page.tabs[0]):
                    _run(page, block, names)
        finally:
            Look.__init__ = usual  # type: ignore[method-assign]
        for picture in sorted(folder.glob("*.svg")):
            draw(picture.rename(picture.with_stem(f"{picture.stem}-phone")), page)


def draw(picture: Path, page: Page) -> None:
    """Keep a picture that an example saved, as the page or the README shows
    it: light or dark, SVG or PNG.
    """
    svg, shown = (
        picture.read_text("utf-8"),
        "\n".join(page.lines) + README.read_text("utf-8"),
    )
    for name, form in ((picture.stem, svg), (f"{picture.stem}-dark", dark(svg))):
        if f"images/{name.replace('-phone', '')}.svg" in shown:
            (DOCS / "images" / f"{name}.svg").write_text(form, "utf-8")
        if f"images/{name}.png" in shown:
            import vl_convert

            (DOCS / "images" / f"{name}.png").write_bytes(
                vl_convert.svg_to_png(form, scale=2)
            )


def dark(svg: str) -> str:
    """A chart for a dark page: no ground, light text and lines;
    colours of data stay, and texts in shaded cells.
    """

    def shade(match: re.Match[str]) -> str:
        if match[0] in _IN_CELLS:
            return match[0]
        whole = (
            "".join(2 * digit for digit in match[1]) if len(match[1]) == 3 else match[1]
        )
        hue, light, strong = colorsys.rgb_to_hls(
            *(int(whole[i : i + 2], 16) / 255 for i in (0, 2, 4))
        )
        if strong < 0.3 or light < 0.25:
            light = 0.93 - 0.85 * light
        red, green, blue = (
            round(255 * part) for part in colorsys.hls_to_rgb(hue, light, strong)
        )
        return f"#{red:02x}{green:02x}{blue:02x}"

    return re.sub(
        r"#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b",
        shade,
        svg.replace('fill="white"', 'fill="none"'),
    )


def _run(page: Page, block: Block, names: dict[str, Any]) -> str:
    out, place = io.StringIO(), f"{page.name}, line {block.line}"
    tree = ast.parse(block.code, place)
    ast.increment_lineno(tree, block.line - 1)
    *body, last = tree.body
    shows = isinstance(last, ast.Expr)
    try:
        with (
            contextlib.redirect_stdout(out),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            exec(
                compile(ast.Module(body if shows else tree.body, []), place, "exec"),
                names,
            )
            value = (
                eval(compile(ast.Expression(last.value), place, "eval"), names)
                if shows
                else None
            )
        if value is not None:
            out.write(f"{value!r}\n")
    except DpFrameError as error:
        if not block.raises:
            raise FailedExampleError(
                f"{place}: {type(error).__name__}: {error}"
            ) from error
        return textwrap.fill(
            f"{type(error).__name__}: {error}", WIDTH, break_long_words=False
        )
    except Exception:
        raise FailedExampleError(f"{place}:\n{traceback.format_exc()}") from None
    if block.raises:
        raise FailedExampleError(f"{place}: nothing was raised")
    said = [
        f"{type(warning.message).__name__}: {warning.message}"
        for warning in caught
        if isinstance(warning.message, DpFrameWarning)
    ]
    lines = "\n".join([out.getvalue().rstrip(), *said]).strip("\n").split("\n")
    return "\n".join(map(_folded, lines))


def _folded(line: str) -> str:
    """A long sentence in several lines; the lines of a table stay."""
    sentence = len(line) > WIDTH and ". " in line and "  " not in line.strip()
    return textwrap.fill(line, WIDTH, break_long_words=False) if sentence else line


def shape(text: str, kind: str) -> str:
    """What is compared: words, and of noisy output neither digits nor the width of columns."""
    if kind == "noisy":
        text = re.sub(r"[-─═┄╌]{2,}", "-", _NUMBER.sub("#", text))
    return " ".join(text.split())


def differences(page: Page, noise: str = "written") -> list[str]:
    """Where a page shows something else than its examples print, and the
    first example of a run that fails.

    With other noise than that of `write`, only what does not depend on noise is compared.
    """
    found = []
    for number, tab in enumerate(page.tabs):
        try:
            blocks = run(page, tab, noise)
        except FailedExampleError as problem:
            found.append(str(problem))
            continue
        for block, printed in blocks:
            if block.shown is None or (number and block.tab is None):
                continue
            if block.kind == "noisy" and noise != "written":
                continue
            if shape(block.shown, block.kind) != shape(printed, block.kind):
                found.append(
                    f"{page.name}, line {block.line}: the page shows\n{block.shown}\nand it "
                    f"prints\n{printed}"
                )
    return found


def write(page: Page) -> bool:
    """Put what the examples print into the page; whether anything changed."""
    new = {}
    for number, tab in enumerate(page.tabs):
        for block, printed in run(page, tab, "written", pictures=True):
            if block.shown is not None and not (number and block.tab is None):
                new[block.span] = printed
    if any(".save(" in block.code for block in page.blocks):
        _for_phones(page)
    lines = list(page.lines)
    for (first, last), printed in sorted(new.items(), reverse=True):
        indent = re.match(r"\s*", lines[first - 1])[0]  # type: ignore[index]
        lines[first:last] = [f"{indent}{line}".rstrip() for line in printed.split("\n")]
    changed = lines != page.lines
    if changed:
        page.path.write_text("\n".join(lines), "utf-8", newline="\n")
    return changed


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("part", nargs="?", default="")
    given = parser.parse_args()
    chosen = [page for page in pages() if given.part in page.name]
    if given.write:
        print("\n".join(page.name for page in chosen if write(page)))
        return 0
    found = [
        text
        for page in chosen
        for noise in ("written", "other")
        for text in differences(page, noise)
    ]
    print("\n\n".join(found) or "Nothing differs.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
