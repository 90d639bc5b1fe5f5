"""Texts of other people, such as keys and names, where a terminal, a spreadsheet,
a page or LaTeX would run them.
"""

from __future__ import annotations

import re

# Control characters, among them those that begin a terminal's commands, and those that turn the
# direction of writing.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# no file needs these, and XML has no first half
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# where a spreadsheet may see the start of a cell
_FORMULA = re.compile(r"(^|[;\t\r\n])([=+\-@](?=.))", re.DOTALL)
# A pattern of Polars for all texts that `for_spreadsheets` changes, and some more.
MAY_RUN = r"(^|[;\t\r\n])[=+\-@]|^[\t\r\n]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
_LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}"},
}
_TAG = re.compile("<(?=/?script|!--)", re.IGNORECASE)


def visible(text: str, keep: str = "") -> str:
    r"""A text for a terminal or a log: control characters are written
    out, other than those to keep.

    >>> print(visible("a\x1b[31m\nb"), visible("a\tb", keep="\t") == "a\tb")
    a\u001b[31m\u000ab True
    """
    return _CONTROL.sub(
        lambda found: found[0] if found[0] in keep else f"\\u{ord(found[0]):04x}", text
    )


def printable(text: str) -> str:
    """A text without control characters, other than tabs and line ends."""
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def for_spreadsheets(text: str) -> str:
    """A text for a cell of CSV: with a quote before what a spreadsheet would run as a formula.

    A number stays a number. Control characters, which a terminal would run, are replaced.

    >>> print(
    ...     for_spreadsheets("=1+1"),
    ...     for_spreadsheets("a;@b"),
    ...     for_spreadsheets("-3.5"),
    ...     for_spreadsheets("-"),
    ... )
    '=1+1 a;'@b -3.5 -
    """
    if _NUMBER.fullmatch(text):
        return text
    text = _FORMULA.sub(r"\1'\2", printable(text))
    return f"'{text}" if text[:1] in ("\t", "\r", "\n") else text


def for_latex(text: str) -> str:
    r"""A text that LaTeX sets as it is, in one line.

    At the start of a line of a table, "[" would be a length, and "*" a part of the line end before
    it.

    >>> print(for_latex("50% off"), for_latex("[0, 18)"))
    50\% off {[}0, 18)
    """
    signs = [_LATEX.get(sign, sign) for sign in _CONTROL.sub(" ", text).lstrip()]
    return "".join(
        [f"{{{sign}}}" if sign in ("[", "*") else sign for sign in signs[:1]] + signs[1:]
    )


def for_script(text: str) -> str:
    """A text for the data of a page's script: what could end the script is
    parted by a sign that is not seen.

    JSON leaves `</script>` as it is, and so do the libraries that write a chart into a page.
    """
    return _TAG.sub("<\N{WORD JOINER}", printable(text))
