"""How Sphinx builds the site: `make docs`."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import dpframe  # noqa: E402 - it is found by the line above

project = "dpframe"
author = "The dpframe developers"
copyright = author
version = release = dpframe.__version__

extensions = [
    "myst_parser",  # pages in Markdown
    "sphinx.ext.autodoc",  # the reference, from docstrings
    "sphinx_design",  # tabs and cards
    "sphinx_copybutton",  # a button that copies an example
    "extensions.docstrings",
    "extensions.formulas",
    "extensions.listing",
    "extensions.markdown",
    "extensions.notebooks",
    "extensions.outputs",
    "extensions.pictures",
]
source_suffix = {".md": "markdown"}
nitpicky = True  # every reference must lead somewhere
templates_path: list[str] = []
default_role = "code"

myst_enable_extensions = [
    "attrs_inline",
    "attrs_block",
    "colon_fence",
    "deflist",
    "dollarmath",
]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

html_math_renderer = "mathml"
html_theme = "furo"
html_title = "dpframe"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_domain_indices = False  # one module would be in it
html_show_sphinx = False
html_theme_options = {
    "top_of_page_buttons": [],
    "light_css_variables": {
        "color-brand-primary": "#2c5f8a",
        "color-brand-content": "#2c5f8a",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8fbbe0",
        "color-brand-content": "#8fbbe0",
    },
}
pygments_style = "tango"
pygments_dark_style = "github-dark"
copybutton_selector = "div.highlight-python pre, div.highlight-console pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
