"""Charts on phones: a page with the picture `NAME.svg` shows `NAME-phone.svg`
there, drawn as wide as the screen.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

_IMAGES = Path(__file__).parents[1] / "images"
_PHONE = "(max-width: 46em)"  # as in `docs/static/site.css`
_PICTURE = re.compile(
    r'<img [^>]*?src="(?P<folder>[^"]*_images/)(?P<name>[^"]+)\.svg"[^>]*>'
)


def _narrow(match: re.Match[str]) -> str:
    """The element of a picture with its form for phones, if there is one."""
    name = _phone(match["name"])
    if not (_IMAGES / f"{name}.svg").exists():
        return match[0]
    source = f'<source media="{_PHONE}" srcset="{match["folder"]}{name}.svg">'
    # the theme shows one of two pictures by the class of the element that has it
    shown = re.search(r"only-(?:light|dark)", match[0])
    return f'<picture class="{shown[0] if shown else "chart"}">{source}{match[0]}</picture>'


def _phone(name: str) -> str:
    """The name of the same picture for phones: "a-dark" has "a-phone-dark"."""
    plain = name.removesuffix("-dark")
    return f"{plain}-phone{name.removeprefix(plain)}"


def show(
    app: Any, page: str, template: str, context: dict[str, Any], tree: Any
) -> None:
    """Put the narrow pictures into a page."""
    if "body" in context:
        context["body"] = _PICTURE.sub(_narrow, context["body"])


def copy(app: Any, problem: Exception | None) -> None:
    """Copy the narrow pictures, which no page names, beside the others."""
    if problem is None and app.builder.format == "html":
        for picture in sorted(_IMAGES.glob("*-phone*.svg")):
            shutil.copyfile(picture, app.outdir / "_images" / picture.name)


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", show)
    app.connect("build-finished", copy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
