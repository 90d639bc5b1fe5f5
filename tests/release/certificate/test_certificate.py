"""The certificate of a release: a document of the claim, the same for a restored
name, and the same on a neighbour.
"""

import hashlib
import json
import random
from fractions import Fraction

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import dpframe as dp
from dpframe import errors
from dpframe.budget import Ledger, canonical
from dpframe.noise import bits
from dpframe.release import paying
from dpframe.release.shown import Filed
from dpframe.release.stored import Answer, packed, unpacked

pytestmark = pytest.mark.filterwarnings("ignore:The released table is empty")
CITIES = ["Bonn", "Kiel", "Ulm"]
PRICE = {"epsilon": 1.0, "delta": 1e-6}
LISTED = {"keys": CITIES, "max_groups": 2, "max_rows_per_group": 3}


def rows(seed=0, units=20):
    rng = random.Random(seed)
    made = [
        (u, rng.choice(CITIES), rng.uniform(-5, 15))
        for u in range(units)
        for _ in range(rng.randint(1, 6))
    ]
    return pl.DataFrame(
        made, schema={"u": pl.Int64, "city": pl.String, "x": pl.Float64}, orient="row"
    )


def frame(table=None, unit="u", **options):
    budget = options.pop("budget", None) or dp.Budget(epsilon=9, delta=1e-3)
    return dp.protect(rows() if table is None else table, unit=unit, budget=budget, **options)


QUESTIONS = {
    "count": lambda f: f.filter(dp.col("x") > 0).count(max_rows=5),
    "groups": lambda f: f.group_by("city", **LISTED).agg(
        n=dp.count(), m=dp.mean("x", (0, 10)), s=dp.sum("x", (0, 10)), q=dp.median("x", (0, 10))
    ),
    "units": lambda f: f.group_by("city", keys=CITIES, max_groups=2).agg(
        n=dp.count_units(), s=dp.sum("x", unit_bounds=(-3, 9))
    ),
    "features": lambda f: f.per_unit(m=dp.mean("x"), k=dp.n_unique("city")).agg(
        m=dp.mean("m", (0, 10)), k=dp.mean("k", (0, 3))
    ),
    "found": lambda f: f.group_by("city", max_groups=2, max_rows_per_group=3).agg(
        n=dp.count(), s=dp.sum("x", (0, 10))
    ),
    "other": lambda f: f.group_by("city", max_groups=2, max_rows_per_group=3, other="(other)").agg(
        m=dp.mean("x", (0, 10))
    ),
    "margins": lambda f: f.with_columns(high=dp.col("x") > 5).crosstab(
        "city", "high", keys={"city": CITIES, "high": [True, False]}, margins="measured", max_rows=5
    ),
    "deciles": lambda f: f.quantile("x", [0.1, 0.5, 0.9], (0, 10), max_rows=3),
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_it_is_json_with_neither_floats_nor_data(name):
    out = QUESTIONS[name](frame()).release(**PRICE)
    certificate = out.certificate()
    text = canonical(certificate)
    assert json.loads(text) == certificate
    assert not any(isinstance(leaf, float) for leaf in leaves(certificate))
    covered = {name for mechanism in certificate["mechanisms"] for name in mechanism["of"]}
    alone = [total for total in certificate["totals"] if total["id"] not in covered]
    assert all(covered.issuperset(total["of"]) for total in alone)
    assert certificate["table"]["sha256"] == hashlib.sha256(out.to_csv().encode()).hexdigest()


def leaves(value):
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, list) else [value]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_neighbour_has_the_same_certificate(name, relation):
    """Whatever rows there are: all but what follows from the time, the charge and
    the released numbers is the same.
    """
    for seed in range(3):
        table = rows(seed)
        other = table.filter(pl.col("u") != seed)
        if relation == "replace":
            other = pl.concat([other, rows(seed + 100).filter(pl.col("u") == 0)])
        first, second = (
            QUESTIONS[name](frame(t, neighbors=relation)).release(**PRICE) for t in (table, other)
        )
        assert of_the_question(first) == of_the_question(second)


def of_the_question(out):
    certificate = out.certificate()
    for name in ("answer", "drawn", "table", "ledger"):
        assert certificate.pop(name) is not None
    return canonical(certificate)


def test_a_guess_of_hidden_numbers_cannot_be_checked_by_it():
    """Nor one of another table of a batch: the hash of the answer is that of
    all numbers and a secret salt.
    """
    asked = frame().group_by("city", keys=CITIES, max_groups=2, max_rows=5).count()
    out = asked.release(epsilon=1.0)
    answer, guesses = out.certificate()["answer"], [Answer(out.to_polars(), {})]
    assert answer not in {hashlib.sha256(packed(guesses)).hexdigest() for _ in range(20)}
    assert unpacked(packed(guesses))[0].long.equals(guesses[0].long)
    hidden = out.suppress(below=1e9)
    assert hidden.certificate() == {**out.certificate(), "table": hidden.certificate()["table"]}
    with bits.substitute(lambda count: np.zeros(count, np.uint64)):  # the salt is all that hides it
        assert (
            hashlib.sha256(packed(guesses)).hexdigest()
            == hashlib.sha256(packed(guesses)).hexdigest()
        )


def test_it_says_the_day_alone():
    out = frame().count(max_rows=2).release(epsilon=1.0)
    assert out.certificate()["drawn"] == out.when.date().isoformat()


def test_the_choices_of_auto_are_in_it_with_what_they_read():
    out = (
        frame()
        .group_by("city", keys=CITIES, limits=dp.Auto())
        .agg(m=dp.mean("x", dp.Auto()))
        .release(epsilon=1.0)
    )
    certificate = out.certificate()
    kinds = [total["kind"] for total in certificate["totals"]]
    assert "histogram" in kinds
    spent = sum(Fraction(m["loss"]["epsilon"]) for m in certificate["mechanisms"])
    assert Fraction(9, 10) < spent <= 1
    assert certificate["chosen"] == {"limits": True}


def test_losses_add_up_to_the_charge():
    """Of pure noise, all of ε is used but for rounding;
    of a pair and what is joined to it, one ε is for all.
    """
    out = QUESTIONS["groups"](frame(budget=dp.Budget(epsilon=9))).release(epsilon=1.0)
    certificate = out.certificate()
    spent = sum(Fraction(m["loss"]["epsilon"]) for m in certificate["mechanisms"])
    assert 1 - Fraction(1, 10**12) < spent <= Fraction(certificate["charge"]["epsilon"]) == 1
    assert certificate["composition"] == {"rule": "epsilon"}
    assert [len(one["of"]) for one in certificate["mechanisms"] if "weight" in one] == [3]


def test_gaussian_losses_add_up_by_squares():
    asked = frame().group_by("city", **LISTED).agg(n=dp.count(), s=dp.sum("x", (0, 10)))
    certificate = asked.release(**PRICE, noise="gaussian").certificate()
    total = {t["id"]: t for t in certificate["totals"]}
    for mechanism in certificate["mechanisms"]:
        (name,), scale = mechanism["of"], Fraction(mechanism["scale"])
        square = Fraction(total[name]["sensitivity"]["l2_squared"]) / scale**2
        assert (
            Fraction(0) <= Fraction(mechanism["loss"]["mu_squared"]) - square < Fraction(1, 10**40)
        )
    assert certificate["composition"]["rule"] == "gaussian"


def test_the_ledger_has_it_and_a_restored_name_too(tmp_path):
    ledger = Ledger(tmp_path / "study.sqlite")
    ask = QUESTIONS["groups"]
    first = ask(frame(budget=ledger.budget("a", epsilon=9.0, delta=1e-3))).release(
        **PRICE, name="visits"
    )
    again = ask(frame(budget=ledger.budget("a", epsilon=9.0, delta=1e-3))).release(
        **PRICE, name="visits"
    )
    assert canonical(first.certificate()) == canonical(again.certificate())
    entries = json.loads(ledger.export("json"))["a"]["entries"]
    named, previous = first.certificate()["ledger"], "0" * 64
    for entry in entries:
        head = json.dumps(
            [previous, entry["number"], entry["kind"], entry["at"]], separators=(",", ":")
        )
        assert (
            hashlib.sha256(f"{head[:-1]},{entry['sealed']}]".encode()).hexdigest() == entry["hash"]
        )
        if entry["number"] == named["number"]:
            assert (entry["hash"], previous) == (named["hash"], named["previous"])
            body = json.loads(entry["sealed"])
            assert (body.get("price") or body["loss"])["epsilon"] == first.certificate()["charge"][
                "epsilon"
            ]
        previous = entry["hash"]
    (result,) = [entry for entry in entries if entry["kind"] == "result"]
    assert json.loads(result["sealed"])["digest"] == first.certificate()["answer"]


def test_a_batch_has_one_for_all_of_its_questions():
    budget = dp.Budget(epsilon=9, delta=1e-3)
    f = frame(budget=budget)
    outs = budget.plan([f.count_units(), f.mean("x", (0, 9), max_rows=2)], **PRICE).release()
    first, second = (out.certificate() for out in outs)
    assert (first.pop("question"), second.pop("question")) == (0, 1)
    assert first.pop("table") != second.pop("table")
    assert first == second
    assert len(first["questions"]) == 2


def test_files_have_it_beside_them(tmp_path):
    out = QUESTIONS["groups"](frame()).release(**PRICE)
    out.to_csv(tmp_path / "table.csv", certificate=True)
    beside = json.loads((tmp_path / "table.csv.certificate.json").read_text(encoding="utf-8"))
    assert beside == out.certificate()
    assert (
        beside["table"]["sha256"]
        == hashlib.sha256((tmp_path / "table.csv").read_bytes()).hexdigest()
    )
    out.to_parquet(tmp_path / "table.parquet")
    metadata = pq.read_schema(tmp_path / "table.parquet").metadata
    assert json.loads(metadata[b"dpframe.certificate"]) == out.certificate()
    with pytest.raises(errors.InvalidArgument, match="give the path"):
        out.to_csv(certificate=True)


def test_a_changed_table_says_so():
    out = frame().group_by("city", **LISTED).count().release(**PRICE)
    changed = out.nonnegative()
    assert out.certificate()["table"]["changed"] == []
    assert changed.certificate()["table"]["changed"]
    assert of_the_question(out) == of_the_question(changed)


def test_a_release_of_an_earlier_version_has_none():
    out = frame().count(max_rows=2).release(epsilon=1.0)
    object.__setattr__(out, "_record", type(out._record)(**{**vars(out._record), "filed": Filed()}))
    with pytest.raises(errors.UnsupportedOperation, match="refresh=True"):
        out.certificate()


@pytest.mark.parametrize(
    ("typed", "origin"),
    [({"max_rows": 3}, "typed"), ({}, "declared"), ({"limits": dp.Auto()}, "auto")],
)
def test_a_limit_says_where_it_comes_from(typed, origin):
    out = frame(max_rows=5).count(**typed).release(epsilon=1.0)
    assert out.certificate()["questions"][0]["limits_from"]["rows"] == origin


@pytest.mark.parametrize(
    ("typed", "origins"), [({}, ["policy"] * 3), ({"max_rows": 3}, ["policy", "typed", "policy"])]
)
def test_a_limit_of_a_policy_file_names_the_file(tmp_path, typed, origins):
    """And one that is typed, and stricter than the file, is typed."""
    file = tmp_path / "visits.toml"
    file.write_text('unit = "u"\nmax_rows = 4\nmax_groups = 2\nmax_rows_per_group = 2\n')
    asked = dp.protect(rows(), policy=file, budget=dp.Budget(epsilon=9)).group_by(
        "city", keys=CITIES, **typed
    )
    (question,) = asked.count().release(epsilon=1.0).certificate()["questions"]
    hashed = hashlib.sha256(file.read_bytes()).hexdigest()
    assert question["policies"] == [{"file": "visits.toml", "sha256": hashed}]
    expected = [f"policy {hashed}" if origin == "policy" else origin for origin in origins]
    assert [
        question["limits_from"][name] for name in ("groups", "rows", "rows_per_group")
    ] == expected
    assert question["limits"]["rows"] == typed.get("max_rows", 4)


def test_limits_of_a_column_are_its_own():
    asked = (
        frame().group_by("city", **LISTED).agg(n=dp.count(), m=dp.mean("x", (0, 10), max_rows=1))
    )
    certificate = asked.release(epsilon=1.0).certificate()
    (own,) = certificate["questions"][0]["own_limits"]
    assert (own["limits"]["rows"], own["typed"]) == (
        1,
        "max_rows=1, max_groups=1, max_rows_per_group=3",
    )
    marks = {
        name: total["own_limits"] for total in certificate["totals"] for name in total["names"]
    }
    assert (marks["n"], marks["m.sum"]) == (None, 0)


def test_rows_as_units_are_limited_by_the_unit():
    question = (
        frame(unit=dp.Rows(3))
        .group_by("city", keys=CITIES)
        .count()
        .release(epsilon=1.0)
        .certificate()["questions"][0]
    )
    assert question["limits"] == {"groups": 3, "rows_per_group": 3, "rows": 3}
    assert set(question["limits_from"].values()) == {"unit"}
    assert question["contribution"] == {"rows": 3, "exactly_one": False}


def test_steps_say_what_they_do_to_rows():
    public = pl.DataFrame({"city": ["Bonn", "Bonn", "Kiel"], "area": [1, 2, 3]})
    asked = (
        frame()
        .filter(dp.col("x") > 0)
        .clip("x", 0, 5)
        .join(public, on="city")
        .per_unit(s=dp.sum("x"))
    )
    question = asked.mean("s", (0, 10)).release(epsilon=1.0).certificate()["questions"][0]
    assert [step["step"] for step in question["steps"]] == [
        "source",
        "filter",
        "rewrite",
        "join_public",
        "per_unit",
    ]
    assert question["steps"][3]["most"] == 2
    assert question["steps"][2]["columns"]["x"]["bounds"] == ["0/1", "5/1"]
    assert question["contribution"] == {"rows": 1, "exactly_one": False}


# Beside it


def test_a_manifest_says_who_ran_what_on_what(tmp_path, monkeypatch):
    monkeypatch.setattr(paying, "user_name", lambda: "ada")
    budget = Ledger(tmp_path / "study.sqlite").budget("a", epsilon=9.0, delta=1e-3)
    asked = dp.protect(rows(), unit="u", budget=budget, data="visits, 2026-03").count(max_rows=2)
    manifest = asked.release(epsilon=1.0, name="march").manifest()
    assert manifest["by"] == "ada"
    assert "visits, 2026-03" in json.dumps(manifest["data"])
    assert manifest["ledger"]["name"] == "march"
    assert manifest["charge"] == {
        "epsilon": "1/1",
        "delta": "0/1",
        "gaussian": manifest["charge"]["gaussian"],
    }
    assert manifest["policies"] == []
    assert "visits, 2026-03" not in json.dumps(
        asked.release(epsilon=1.0, name="march").certificate()
    )
    monkeypatch.setattr(paying, "user_name", lambda: "grace")
    assert asked.release(epsilon=1.0, name="march").manifest() == manifest


def test_an_entry_of_the_registry_is_yaml():
    yaml = pytest.importorskip("yaml")
    out = QUESTIONS["found"](frame()).release(**PRICE)
    entry = yaml.safe_load(
        out.report().to_registry(name="Visits: by city", curator="Us", authors=["Ada", "Grace"])
    )
    assert entry["url_slug"] == "visits-by-city"
    deployment = entry["deployment"]
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0, "delta": 1e-6}
    assert deployment["dp_variant"]["variant_name"] == "Approximate DP"
    assert deployment["basic"]["data_curators"] == [
        {"data_curator_name": "Us", "data_curator_type": ""}
    ]
    assert deployment["administrative"]["registry_authors"] == ["Ada", "Grace"]
    assert deployment["basic"]["publication_date"] == out.when.date().isoformat()


def test_what_the_registry_does_not_take():
    report = frame().count(max_rows=2).release(epsilon=1.0).report()
    assert 'intended_use: ""  # fill in' in report.to_registry()
    with pytest.raises(errors.InvalidArgument, match="intended_use="):
        report.to_registry(use="counting")
    with pytest.raises(errors.InvalidArgument, match="a text"):
        report.to_registry(name=3)
