"""Names that users of pandas and Polars type by habit, and what to type here.
Each kind of object has a table.
"""

from __future__ import annotations

from collections.abc import Mapping


def _table(lines: Mapping[str, str]) -> Mapping[str, str]:
    """Advice by name, from lines of advice for several names."""
    return {name: advice for names, advice in lines.items() for name in names.split()}


NO_ROWS = "Rows are not shown; ask about them, such as count(max_rows=5).release(epsilon=0.1)."
_PROTECT_FIRST = "Protect the table first, then take steps: df.dp(unit='user_id').filter(...)."
_FILTER = "Type filter(dp.col('age') >= 18)."
_COUNT_BY = "Type group_by('city', keys=[...], max_groups=1, max_rows_per_group=5).count()."
_TABLE = (
    "head tail columns iloc loc shape sort_values sort filter nlargest nsmallest top_k query "
    "merge join describe"
)
_IN_AGG = (
    "An expression reads one row; an aggregate has a name: agg(m=dp.mean('x', bounds=(0, 100)))."
)

NOT_RELEASED = (
    "A query is not a number: nothing is released yet. Compute with what is released: "
    "query.release(epsilon=0.1).value, or .table where it has several."
)

MODULE = _table(
    {
        "top_k value_counts": "Type frame.top_k('x', 3, keys=[...], max_rows=5), or leave "
        "keys= out.",
        "histogram hist": "Type frame.histogram('x', bins=[0, 10, 20], max_rows=5).",
        "rate proportion share": "A rate is the mean of a condition: "
        "with_columns(late=dp.col('delay') > 15), then dp.mean('late').",
        "crosstab pivot_table": "Type frame.crosstab('region', 'sex', keys={...}, max_rows=1).",
        "describe summary": "Type frame.describe(bounds={'x': (0, 100)}, max_rows=5).",
        "group_by groupby": "Type frame.group_by('city', keys=[...], max_groups=1, "
        "max_rows_per_group=5).",
        "all_horizontal any_horizontal": "Type dp.col('a') & dp.col('b'), or dp.col('a') | "
        "dp.col('b').",
        "sum_horizontal": "Type dp.col('a') + dp.col('b').",
        "max_horizontal min_horizontal": "Type dp.when(dp.col('a') > dp.col('b')).then(dp.col('a'))"
        ".otherwise(dp.col('b')).",
        "DataFrame LazyFrame Series read_csv read_parquet from_pandas": "Type dp.protect(table, "
        "unit='user_id').",
    }
)
FRAME = _table(
    {
        "assign with_column insert": "Type with_columns(weekly=dp.col('wage') / dp.col('weeks')).",
        "aggregate": "Type agg(n=dp.count(), m=dp.mean('x', bounds=(0, 100)), max_rows=5).",
        "query loc where mask": _FILTER,
        "dropna drop_null_and_nan drop_nans": "Type drop_nulls('x'); NaN is missing too.",
        "drop_infinity replace_infinity": "Type filter(dp.col('x').is_between(-1e300, 1e300)), "
        "or clip('x', 0, 100).",
        "enforce": "Limits are said once, dp(..., max_rows=20), or in a question: "
        "count(max_rows=20).",
        "bin_column": "Type cut('x', [0, 18, 65]).",
        "get_bounds": "Bounds are chosen inside a release: mean('x', bounds=dp.Auto(), "
        "max_rows=5).",
        "privacy_id_count": "Type count_units().",
        "with_row_index with_row_count": "Rows have no order here, and no number.",
        "fillna": "Type fill_null('x', 0).",
        "astype": "Type cast('x', 'float64').",
        "merge": "Type join(other, on='city').",
        "pivot_table pivot": "Type crosstab('region', 'sex', keys={...}, max_rows=1).",
        "value_counts": f"{_COUNT_BY} The most frequent values that nobody listed are top_k('x', "
        "10, max_rows=5).",
        "nunique": "Type n_unique('x', max_rows=5).",
        "ratio": "Type agg(r=dp.ratio(dp.sum('x', bounds=(0, 100)), dp.sum('y', bounds=(0, 60)))).",
        "size": "Type count(max_rows=5).release(epsilon=0.1): how many rows there are is private.",
        "dtypes schema info": "Print the frame: its columns and types are public.",
        "hist": "Type histogram('x', bins=[0, 10, 20], max_rows=5).",
        "resample group_by_dynamic": "A series lists its times: "
        "group_by(dp.col('when').dt.truncate('1w'), keys=pd.date_range('2026-01-05', "
        "'2026-01-26', freq='7D'), max_groups=4, max_rows_per_group=7).count().",
        "nlargest nsmallest largest": "Rows are not shown. For the largest groups release the "
        "counts, and sort them: group_by('city', max_groups=3, "
        "max_rows_per_group=2).count().release(epsilon=0.1, delta=1e-6).table. The most "
        "frequent values are top_k('x', 3, max_rows=5), or of listed ones top_k('x', 3, "
        "keys=[...], max_rows=5).",
        "melt unpivot stack": "There is no melt: rows are not turned into several. Ask about "
        "several columns at once: agg(a=dp.mean('a', bounds=(0, 1)), b=dp.mean('b', "
        "bounds=(0, 1)), max_rows=5).",
        "drop_duplicates unique distinct duplicated": "Rows are not compared, so there is no "
        "drop_duplicates: make one row of each unit with per_unit(city=dp.first('city', "
        "by='when')), or count values with n_unique('x').",
        "explode flat_map": "There is no explode: one row would become several. Do it before the "
        "table is protected, with max_rows= in mind.",
        "shift diff rolling cumsum cum_sum pct_change rank": "Rows have no order here. Totals "
        "over time are those of group_by(dp.col('when').dt.date(), keys=[...], max_groups=7, "
        "max_rows_per_group=5), added up after release: out = query.release(epsilon=0.1), "
        "then out.rolling(7).mean(), out.diff() or out.pct_change(), which are free.",
        "append concat vstack extend union": "Type dp.concat([frame, other]).",
        "isna isnull": "Type with_columns(missing=dp.col('x').is_null()).",
        "replace": "Type with_columns(dp.col('x').replace({'a': 'b'})).",
        "eval": "Type with_columns(double=dp.col('x') * 2).",
        "round abs log exp": "Type with_columns(x=dp.col('x').round(1)); an expression has "
        "abs, log, exp and more.",
        "set_index reset_index": "There is no index: columns have names, and group_by('city', "
        "keys=[...]) takes them.",
        "release": "Ask something first: count(max_rows=5).release(epsilon=0.1).",
        "sort sort_values": "Rows are not shown, so they need no order: release a table, and "
        "sort that.",
        "plot": "Release a table first: histogram('x', bins=[0, 10, 20], "
        "max_rows=5).release(epsilon=0.1).plot().",
        "synthetic synthetic_data generate sample_rows": "Type synthesize(keys={...}, "
        "bounds={...}, max_rows=1).release(epsilon=1.0, delta=1e-9).table.",
        "sample": "Rows are not shown. Synthetic rows are synthesize(keys={...}, bounds={...}, "
        "max_rows=1).release(epsilon=1.0, delta=1e-9).table.",
        "head tail shape iloc at iat height values index to_pandas to_polars to_arrow to_dict "
        "to_numpy to_csv to_parquet collect limit slice iterrows iter_rows rows apply map": NO_ROWS,
    }
)
GROUPS = _table(
    {
        "size len": "Type .count().",
        "aggregate": "Type .agg(n=dp.count(), m=dp.mean('x', bounds=(0, 100))).",
        "nunique": "Type .n_unique('x').",
        "ratio": "Type agg(r=dp.ratio(dp.sum('x', bounds=(0, 100)), dp.sum('y', bounds=(0, 60)))).",
        "describe": "Groups have its parts: .agg(n=dp.count('x'), m=dp.mean('x', bounds=(0, 100)), "
        "s=dp.std('x', bounds=(0, 100))).",
        "histogram hist": "Type frame.cut('x', [0, 50, 100]).group_by('city', 'x').count().",
        "ols": "A regression in each group: {key: part.ols(y='y', x=['x']).release(epsilon=0.1) "
        "for key, part in frame.partition('city', keys=[...]).items()}, at the price of one "
        "where each person is in one group.",
        "crosstab pivot pivot_table": "Type frame.crosstab('region', 'sex', keys={...}).",
        "groups get_group head tail first last apply transform": NO_ROWS,
        "release": "Ask something first: .count().release(epsilon=0.1).",
    }
)
_NOT_YET = "Nothing is released yet: type .release(epsilon=0.1), and read its .table or .value."
QUERY = _table(
    {
        "sort sort_values with_columns filter round table value values": _NOT_YET,
        "collect compute execute head": _NOT_YET,
        "to_pandas to_polars to_arrow to_csv to_parquet report noise cost": _NOT_YET,
        "error errors": "Type .accuracy(epsilon=0.1).",
    }
)
_RELEASED = {  # of all that is released
    "error errors": "Type .accuracy().",
    "epsilon delta": "Type .cost.",
    "explain": "Type .report() or .derivation.",
    "to_json": "Type .report().to_json().",
}
RELEASE = _table(
    {
        _TABLE: "Type .table: it is a table of the kind you know.",
        "to_frame df data collect": "Type .table.",
        "item result": "Type .value.",
        **_RELEASED,
        "left_out left_out_lower left_out_upper bias": "It is a column of .accuracy(), where "
        "limits=dp.Auto() or bounds=dp.Auto() chose limits or bounds; .report() says it in "
        "words.",
    }
)
MARGINALS = _table(
    {
        "with_ci": "Type .accuracy(): it has an interval for every number, and out['a', "
        "'b'].accuracy() those of one table.",
        "suppress plot": "One table has it: out['a', 'b'].",
        "value": "Type .table, or out['a', 'b'].table.",
        _TABLE: "Type .table: it is a table of the kind you know.",
        "to_frame df data collect": "Type .table.",
        **_RELEASED,
    }
)
HIERARCHY = _table(
    {
        "value": "Type out['total'].value.",
        _TABLE: "Type .table, or out['region'].table: it is a table of the kind you know.",
        "to_frame df data collect": "Type .table, or out['region'].table.",
        **_RELEASED,
        "shrink": "Least squares over all levels has drawn the small nodes to their parents "
        "already.",
    }
)
SYNTHETIC = _table(
    {
        f"{_TABLE} to_frame df data collect rows": "Type .table: it is a table of the kind you "
        "know.",
        "value tables": "Type .marginals for the noisy tables, .table for the rows.",
        **_RELEASED,
        "with_ci": "Rows have no intervals; the noisy tables have errors: "
        ".marginals['a',].with_ci().",
    }
)
SYNTHETIC_QUERY = {
    **QUERY,
    **_table(
        {
            "accuracy error errors": "Which tables are measured depends on noise, so errors are "
            "known after the release: out = query.release(epsilon=1.0, delta=1e-9), then "
            "out.accuracy() and out.noise.",
        }
    ),
}
MATRIX = _table(
    {
        "with_ci error errors": "Type .accuracy(): it has an interval for each pair.",
        "plot heatmap": "A matrix has no picture. Type .table, or .accuracy() for the interval "
        "of each pair.",
        "iloc loc shape columns to_frame df data": "Type .table, or .values for an array.",
        "epsilon delta": "Type .cost.",
    }
)
REGRESSION = _table(
    {
        "summary params coef coef_ bse conf_int to_frame df data": "Type .table: coefficient, "
        "std_error, low and high of each term. .accuracy(alpha=0.1) has other intervals.",
        "pvalues tvalues rsquared resid": "It is not released. .table has the interval of each "
        "coefficient.",
        "intercept intercept_": "Type .coefficients['Intercept'].",
        "error errors with_ci": "Type .accuracy(alpha=0.05).",
        "epsilon delta": "Type .cost.",
    }
)
EXPRESSION = _table(
    {
        "is_finite is_infinite": "Type .is_between(-1e300, 1e300): infinities lie outside.",
        "isin": "Type .is_in([...]).",
        "isna isnull is_nan is_missing": "Type .is_null(); NaN is missing too.",
        "notna notnull is_not_nan": "Type .is_not_null().",
        "between": "Type .is_between(0, 10).",
        "fillna": "Type .fill_null(0).",
        "astype": "Type .cast('float64').",
        "mean sum count min max median std var quantile n_unique nunique len": _IN_AGG,
        "name": "Type .alias('weekly'), or the name as a keyword: "
        "with_columns(weekly=dp.col('wage') / 52).",
        "log2": "Type .log(2).",
        "year quarter month week day weekday dayofweek hour minute second "
        "date": "Of a time, type .dt.month(): .dt has year, quarter, month, week, day, weekday, "
        "ordinal_day, hour, minute, second and date.",
        "cbrt": "Type (dp.col('x').log() / 3).exp().",
        "truncate": "Of a time, type .dt.truncate('1w'). Of a number, type .floor() or "
        ".clip(0, 100).",
        "cut qcut q_cut": "Type frame.cut('x', [0, 18, 65]).",
        "map apply map_elements": "Type .replace({'a': 'b'}), or dp.when(dp.col('x') == "
        "'a').then('b').otherwise('c').",
        "combine_first": "Type dp.coalesce('x', 'y').",
        "shift diff rank rolling rolling_mean cum_sum cumsum pct_change over rolling_expr "
        "is_duplicated is_unique is_first_distinct is_last_distinct ffill bfill interpolate "
        "sample": "An expression reads one row alone, so nothing of other rows can be in it. What "
        "needs all rows of a unit is per_unit(total=dp.sum('x')).",
        "nlargest nsmallest sort sort_by top_k": "An expression reads one row. The most frequent "
        "values are frame.top_k('x', 3, keys=[...], max_rows=5), or without keys= those that "
        "the data holds.",
    }
)
AGGREGATE = _table(
    {
        "over": "An aggregate is asked of groups: frame.group_by('city', "
        "keys=[...]).agg(m=dp.mean('x', bounds=(0, 100))). Of each unit's own rows it is a "
        "feature: frame.per_unit(first=dp.min('x')).",
        "filter where": "Rows are chosen before: frame.filter(dp.col('age') >= 18). For one "
        "column of several, its values are: with_columns(adult=dp.when(dp.col('age') >= "
        "18).then(dp.col('spend'))), and then dp.sum('adult').",
        "clip round cast fill_null abs log sqrt": "What is done with each row comes before: "
        "with_columns(y=dp.col('x').clip(0, 100)). Released numbers are rounded for free: "
        "release(...).round().",
        "name suffix prefix": "Type .alias('mean_age'), or the name as a keyword: "
        "agg(mean_age=dp.mean('age')).",
        "release explain accuracy": "Ask it of a protected table first: frame.agg(m=dp.mean('x', "
        "bounds=(0, 100))).release(epsilon=0.1).",
    }
)
NO_NUMBER = (
    "An aggregate is a question and no number. What is computed of each row comes before it, "
    "with_columns(y=dp.col('x') * 2). What is computed of answers comes after the release, for "
    "free: out.table['m'] * 2. The quotient of two sums is dp.ratio(dp.sum('x'), dp.sum('y'))."
)
BATCH = _table(
    {
        "accuracy error": "Type .noise for the scale of each column; each answer of .release() "
        "has .accuracy().",
        "explain sensitivity": "Type it of one of the queries: query.explain(), query.sensitivity.",
        "epsilon_for": "Type it of one of the queries: query.epsilon_for(error=10).",
        "table value to_pandas to_polars to_arrow": "Nothing is released yet: type .release(), "
        "which gives a list.",
    }
)
TEXT = _table(
    {
        "lower": "Type .str.to_lowercase().",
        "get": "Type .str.split(',').list.get(0) for a piece, or .str.slice(0, 1) for a character.",
        "title capitalize titlecase to_titlecase": "There is none. Do it before the table is "
        "protected; of texts there are .str.to_lowercase(), .str.slice(0, 3) and "
        ".str.replace_all(' ', '').",
        "strip": "Type .str.strip_chars().",
        "lstrip": "Type .str.strip_chars_start().",
        "rstrip": "Type .str.strip_chars_end().",
        "removeprefix": "Type .str.strip_prefix('a').",
        "removesuffix": "Type .str.strip_suffix('a').",
        "cat concat join": "Type dp.concat_str(['a', 'b'], separator=' '), or dp.col('a') + "
        "dp.col('b').",
        "pad_start rjust": "Type .str.zfill(5) for zeros.",
        "strptime": "Type .str.to_date('%d.%m.%Y') or .str.to_datetime('%d.%m.%Y %H:%M').",
        "count": "Type .str.count_matches('a').",
        "match": "Type .str.contains('^(?:a|b)', regex=True).",
        "fullmatch": "Type .str.contains('^(?:a|b)$', regex=True).",
        "contains_any": "Type .str.contains('a|b', regex=True).",
        "replace_many extract_all extract_many find findall": "Type .str.replace_all('a|b', 'c', "
        "regex=True), .str.extract('id ([0-9]+)'), .str.count_matches('a') or "
        ".str.split(',').list.get(0).",
        "upper": "Type .str.to_uppercase().",
        "len len_bytes": "Type .str.len_chars().",
        "startswith": "Type .str.starts_with('a').",
        "endswith": "Type .str.ends_with('a').",
    }
)
_PIECE = "Type .list.get(0) for the first piece, or -1 for the last."
PIECES = _table(
    {"len lengths explode join contains slice head tail to_struct arr struct cast alias": _PIECE}
)
CALENDAR = _table(
    {
        "dayofweek day_of_week day_name": "Type .dt.weekday(): Monday is 1.",
        "dayofyear day_of_year": "Type .dt.ordinal_day().",
        "floor normalize round": "Type .dt.truncate('1d'), or '1h', '15m', '1w', '1mo'.",
        "ceil": "Type .dt.truncate('1mo'): the windows are named by their start. A month ends at "
        ".dt.month_end().",
        "days seconds": "Of a duration, type .dt.total_days() or .dt.total_seconds().",
        "to_period month_name": "Type .dt.truncate('1mo'), or .dt.month().",
        "isocalendar weekofyear iso_week": "Type .dt.week().",
        "strftime to_string": "Type .dt.date(), or a part such as .dt.month().",
        "time": "Type .dt.hour() and .dt.minute().",
        "tz_convert": "Type .dt.convert_time_zone('Europe/Berlin').",
        "tz_localize": "Type .dt.replace_time_zone('Europe/Berlin').",
        "total_milliseconds total_microseconds total_nanoseconds": "Type .dt.total_seconds().",
    }
)
ACCESSOR = _table(
    {
        "groupby group_by filter with_columns assign clip cast cut select drop rename fill_null "
        "drop_nulls join bound per_unit partition query": _PROTECT_FIRST,
        **{name: advice for name, advice in FRAME.items() if advice == NO_ROWS},
    }
)
