"""Everything that people read: released tables, crosstabs, files,
charts, and the privacy statement.
"""

from dpframe.release.shown.charts import (
    MISSING,
    Grouped,
    Heading,
    decimals_by_column,
    distances_chart,
    grouped_chart,
    in_words,
    priced_chart,
    read_look,
    title_of,
)
from dpframe.release.shown.crosstab import as_text, unlike, with_every_key
from dpframe.release.shown.error_tables import (
    error_table,
    errors_together,
    largest_error,
    noise_rows,
    noise_table,
)
from dpframe.release.shown.files import whole
from dpframe.release.shown.ledger_page import cap_words, charge_rows, ledger_page
from dpframe.release.shown.left_out import bias_words
from dpframe.release.shown.release import Release
from dpframe.release.shown.released import Exports, Filed, Record, Released
from dpframe.release.shown.report import (
    Report,
    completed,
    fixed_words,
    loss_words,
    statement,
)
from dpframe.release.shown.sdmx import write_sdmx
from dpframe.release.shown.usefulness import hidden_words, warn_hopeless

__all__ = [
    "MISSING",
    "Exports",
    "Filed",
    "Grouped",
    "Heading",
    "Record",
    "Release",
    "Released",
    "Report",
    "as_text",
    "bias_words",
    "cap_words",
    "charge_rows",
    "completed",
    "decimals_by_column",
    "distances_chart",
    "error_table",
    "errors_together",
    "fixed_words",
    "grouped_chart",
    "hidden_words",
    "in_words",
    "largest_error",
    "ledger_page",
    "loss_words",
    "noise_rows",
    "noise_table",
    "priced_chart",
    "read_look",
    "statement",
    "title_of",
    "unlike",
    "warn_hopeless",
    "whole",
    "with_every_key",
    "write_sdmx",
]
