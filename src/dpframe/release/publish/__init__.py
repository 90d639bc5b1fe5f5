"""What people read: released tables, crosstabs, marginals, files, charts, and the privacy statement."""

from dpframe.release.publish.charts import (
    Grouped,
    Heading,
    distances_chart,
    forecast_chart,
    grouped_chart,
    read_look,
)
from dpframe.release.publish.crosstab import (
    as_text,
)
from dpframe.release.publish.error_tables import (
    noise_rows,
    noise_table,
)
from dpframe.release.publish.files import check_installed, write_csv, write_excel, write_latex, write_parquet
from dpframe.release.publish.heading import heading_of, in_words, title_of
from dpframe.release.publish.ledger_page import ledger_page, price_words
from dpframe.release.publish.left_out import bias_words
from dpframe.release.publish.marginals import (
    MarginalsRelease,
    drawn_interactions,
    exact_interactions,
    interaction_variances,
    table_noise,
)
from dpframe.release.publish.prices import (
    priced_chart,
)
from dpframe.release.publish.release import (
    Release,
)
from dpframe.release.publish.report import (
    Report,
    loss_json,
    statement,
)
from dpframe.release.publish.usefulness import warn_hopeless

__all__ = [
    "Grouped",
    "Heading",
    "MarginalsRelease",
    "Release",
    "Report",
    "as_text",
    "bias_words",
    "check_installed",
    "distances_chart",
    "drawn_interactions",
    "exact_interactions",
    "forecast_chart",
    "grouped_chart",
    "heading_of",
    "in_words",
    "interaction_variances",
    "ledger_page",
    "loss_json",
    "noise_rows",
    "noise_table",
    "price_words",
    "priced_chart",
    "read_look",
    "statement",
    "table_noise",
    "title_of",
    "warn_hopeless",
    "write_csv",
    "write_excel",
    "write_latex",
    "write_parquet",
]
