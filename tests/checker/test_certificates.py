"""The verdicts on certificates of releases, on changed ones, on ledgers and
tables; and the checker as a file.
"""

import copy
import itertools
import json
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import dpframe as dp
from certified import ASKED, OTHERS, PRICES
from dpframe import dpframe_check
from dpframe.__main__ import main
from questions import TABLE

pytestmark = pytest.mark.filterwarnings("ignore::dpframe.errors.DpFrameWarning")
HERE = Path(dpframe_check.__file__)


def _released(name, price, neighbors="add-remove", budget=None):
    limit = {"rho": 1e6} if price == "rho" else {"epsilon": 1e6}
    budget = budget or dp.Budget(**limit, delta=0.1)
    return ASKED[name](dp.protect(TABLE, unit="u", budget=budget, neighbors=neighbors)).release(
        **PRICES[price]
    )


def _check(certificate, *more):
    """The checker sees what a file would hold."""
    return dpframe_check.Check(json.loads(json.dumps(certificate)), *more)


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("price", PRICES)
@pytest.mark.parametrize("name", ASKED)
@pytest.mark.one_in(40)
def test_every_question_is_proved(name, price, neighbors):
    try:
        certificate = _released(name, price, neighbors).certificate()
    except dp.errors.DpFrameError:
        pytest.skip("not offered at this price")
    found = _check(certificate)
    assert found.verdict == "PROVED", (found.refused, found.unknown)


@pytest.fixture(
    scope="module",
    params=[
        ("all three", "epsilon"),
        ("keys of few groups", "gaussian"),
        ("moments", "rho"),
        ("ranks", "delta"),
    ],
)
def certificate(request):
    """One release of each kind of price."""
    return _released(*request.param).certificate()


def _places(document, path=()):
    """Every number of a certificate, with the place where it stands."""
    items = (
        document.items()
        if isinstance(document, dict)
        else enumerate(document)
        if isinstance(document, list)
        else ()
    )
    for key, value in items:
        yield (*path, key), value
        yield from _places(value, (*path, key))


def _with(certificate, path, value):
    made = copy.deepcopy(certificate)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def _times(text, factor):
    value = Fraction(text) * factor
    return f"{value.numerator}/{value.denominator}"


def test_claims_that_are_too_small_are_refused(certificate):
    """Each sensitivity, loss and charge, at half of what is claimed;
    the δ of keys may be less than was charged.
    """
    places = [
        (path, value)
        for path, value in _places(certificate)
        if "sensitivity" in path or "loss" in path or (path[0] == "charge" and path[-1] != "delta")
    ]
    changed = [
        (path, _times(value, Fraction(1, 2)))
        for path, value in places
        if isinstance(value, str) and value[0] != "0"
    ]
    changed += [(path, value - 1) for path, value in places if type(value) is int and value > 0]
    assert len(changed) > 5
    for path, value in changed:
        assert _check(_with(certificate, path, value)).verdict == "REFUSED", path


def test_noise_that_is_too_small_is_refused(certificate):
    """Half of a scale, a threshold that is lower."""
    scales = [
        (path, _times(value, Fraction(1, 2)))
        for path, value in _places(certificate)
        if path[-1] == "scale"
    ]
    thresholds = [
        (path, value // 2) for path, value in _places(certificate) if path[-1] == "threshold"
    ]
    assert scales
    for path, value in scales + thresholds:
        assert _check(_with(certificate, path, value)).verdict == "REFUSED", path


def test_a_part_that_is_missing_is_refused(certificate):
    """A mechanism or a total less, or a rule for keys."""
    for path in [("mechanisms",), ("totals",)]:
        inner = certificate
        for key in path:
            inner = inner[key]
        for i, part in enumerate(inner):
            if part.get("sensitivity", {}).get("l0") != 0:
                found = _check(_with(certificate, path, [*inner[:i], *inner[i + 1 :]]))
                assert found.verdict != "PROVED", (path, i)
            if "finds" in part:
                left = {name: value for name, value in part.items() if name != "finds"}
                assert _check(_with(certificate, (*path, i), left)).verdict == "REFUSED"


def test_another_relation_is_refused():
    certificate = _released("all three", "epsilon").certificate()
    assert _check({**certificate, "relation": "replace"}).verdict == "REFUSED"


def test_what_is_not_known_is_never_proved(certificate):
    for path, _ in [
        (p, v)
        for p, v in _places(certificate)
        if p[-1] in ("kind", "law") or p == ("composition", "rule")
    ]:
        assert _check(_with(certificate, path, "new")).verdict in ("UNKNOWN", "REFUSED"), path
    assert _check({**certificate, "certificate": 2}).verdict == "UNKNOWN"


def test_values_that_make_no_sense_are_refused(certificate):
    for path, value in _places(certificate):
        wrong = (
            [-1, "1/0", "1.5", None, [], 0.5]
            if path[-1] in ("scale", "epsilon", "rho")
            else [-1, 0.5, "3", {}]
        )
        numbers = path[-1] in ("fraction", "cells", "scale", "epsilon", "number") and path[0] in (
            "totals",
            "mechanisms",
            "charge",
        )
        for x in wrong if numbers and value is not None else ():
            assert _check(_with(certificate, path, x)).verdict != "PROVED", (path, x)


@pytest.fixture
def files(tmp_path):
    """A certificate with its ledger's export and its table, as files."""
    ledger = dp.Ledger(tmp_path / "study.sqlite")
    budget = ledger.budget("study", epsilon=9, delta=1e-5)
    _released("rows", "epsilon", budget=budget)
    release = _released("all three", "epsilon", budget=budget)
    made = {"release.json": json.dumps(release.certificate()), "export.json": ledger.export("json")}
    made["table.csv"] = release.to_csv()
    for name, text in made.items():
        (tmp_path / name).write_bytes(text.encode())
    return tmp_path


def _run(files, capsys):
    arguments = [
        str(files / "release.json"),
        "--ledger",
        str(files / "export.json"),
        "--table",
        str(files / "table.csv"),
    ]
    code = main(["check", *arguments])
    text = capsys.readouterr().out
    assert dpframe_check.main(arguments) == code
    assert capsys.readouterr().out.strip() == text.strip(), "the command is the file"
    return code, text


def test_a_release_with_its_ledger_and_its_table(files, capsys):
    code, text = _run(files, capsys)
    assert (code, "PROVED" in text, "unbroken chain" in text, "table: it has the hash" in text) == (
        0,
        True,
        True,
        True,
    )
    assert "It is assumed that" in text


def test_another_table_is_refused(files, capsys):
    table = files / "table.csv"
    table.write_text(table.read_text() + "\n")
    code, text = _run(files, capsys)
    assert (code, "REFUSED" in text) == (1, True)


def test_a_changed_ledger_is_refused(files, capsys):
    export, text = files / "export.json", (files / "export.json").read_text()
    entries = json.loads(text)["study"]["entries"]
    for i, entry in enumerate(entries):
        for key, value in (
            ("sealed", entry["sealed"].replace("1", "2", 1)),
            ("at", "2026"),
            ("kind", "x"),
            ("number", 9),
        ):
            changed = [*entries[:i], {**entry, key: value}, *entries[i + 1 :]]
            export.write_text(json.dumps({"study": {"entries": changed}}))
            assert _run(files, capsys)[0] == 1, (i, key)
    for kept in itertools.combinations(entries, len(entries) - 1):
        if kept != tuple(entries[:-1]):  # the end of a ledger may be missing, but for the answer
            export.write_text(json.dumps({"study": {"entries": kept}}))
            assert _run(files, capsys)[0] == 1


def test_a_certificate_of_another_question_is_refused(files, capsys):
    """It names the entry and the answer of a charge of the same price, whose
    result keeps another certificate.
    """
    own = json.loads((files / "release.json").read_text())
    first = dp.Ledger(files / "study.sqlite").budget("study")
    other = _released("rows", "epsilon", budget=first).certificate()
    (files / "export.json").write_text(dp.Ledger(files / "study.sqlite").export("json"))
    assert own["charge"]["epsilon"] == other["charge"]["epsilon"]
    for path in ("ledger", "answer", "drawn", "versions", "chosen"):
        own[path] = other[path]
    (files / "release.json").write_text(json.dumps(own))
    code, text = _run(files, capsys)
    assert (code, "keeps a certificate of its own, which has another" in text) == (1, True)
    (files / "release.json").write_text(json.dumps({**own, "answer": None}))
    code, text = _run(files, capsys)
    assert (code, "the result of this charge is another answer" in text) == (1, True)


def test_a_charge_of_another_price_is_refused(files, capsys):
    certificate = json.loads((files / "release.json").read_text())
    certificate["charge"]["epsilon"] = _times(certificate["charge"]["epsilon"], 2)
    (files / "release.json").write_text(json.dumps(certificate))
    assert _run(files, capsys)[0] == 1


def _part_of_a_partition(budget):
    """The second part of equal price, which costs the whole budget nothing more."""
    rows = dp.protect(TABLE, unit="u", budget=budget, max_groups=1, max_rows=1, data="rows")
    parts = rows.partition("city", keys=["Bonn", "Kiel"])
    parts["Bonn"].count().release(epsilon=0.5)
    return parts["Kiel"].count()


def _of(pays):
    return dp.protect(TABLE, unit="u", budget=pays, max_rows=1, data="rows").count()


SHARES = {
    "a share": ({"epsilon": 9}, {"epsilon": 0.5}, lambda b: _of(b.allocate(name="ana", epsilon=1))),
    "a night": (
        {"epsilon": 9, "delta": 1e-5},
        {"epsilon": 0.5},
        lambda b: _of(b.allocate(nights=2, epsilon=1)),
    ),
    "ρ of a share": (
        {"rho": 1, "delta": 1e-5},
        {"rho": 0.1},
        lambda b: _of(b.allocate(name="ana", rho=0.2)),
    ),
    "a part of a partition": ({"epsilon": 9}, {"epsilon": 0.5}, _part_of_a_partition),
}


@pytest.mark.parametrize("how", SHARES)
def test_a_release_that_was_paid_in_advance_or_beside_another_part(tmp_path, how):
    """Its entry charges the budget nothing, and has its price; another price is refused."""
    limit, price, asked = SHARES[how]
    ledger = dp.Ledger(tmp_path / "study.sqlite")
    certificate = asked(ledger.budget("study", **limit)).release(**price, name="rows").certificate()
    export = json.loads(ledger.export("json"))
    found = _check(certificate, export)
    assert (found.verdict, found.refused) == ("PROVED", [])
    (term,) = price
    own = certificate["charge"][term]
    for times in (0, 2):  # nothing is what the budget itself was charged
        certificate["charge"][term] = _times(own, times)
        assert "another one than the entry is charged with" in " ".join(
            _check(certificate, export).refused
        )


def test_a_file_that_cannot_be_read(tmp_path, capsys):
    (tmp_path / "no.json").write_text("[1")
    assert (
        dpframe_check.main([str(tmp_path / "no.json")])
        == main(["check", str(tmp_path / "missing.json")])
        == 2
    )


def test_the_file_runs_by_itself(files, tmp_path):
    """Copied out, without any other package, and short enough to be read."""
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / HERE.name).write_bytes(HERE.read_bytes())
    command = [sys.executable, "-I", "-S", str(alone / HERE.name), str(files / "release.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, "PROVED" in done.stdout, done.stderr) == (0, True, "")
    imported = {
        line.split()[1].split(".")[0]
        for line in HERE.read_text().splitlines()
        if line.startswith(("import ", "from "))
    }
    assert imported <= set(sys.stdlib_module_names)


@pytest.mark.parametrize("price", ["delta", "rho"])
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.one_in(2)
def test_other_kinds_of_questions_are_proved(name, price):
    found = _check(_released(name, price).certificate())
    assert found.verdict == "PROVED", (found.refused, found.unknown)


def test_synthetic_rows_are_unknown():
    frame = dp.protect(TABLE, unit="u", budget=dp.Budget(epsilon=9, delta=0.1))
    rows = frame.synthesize(["city", "yes"], keys={"city": ["", "Bonn"], "yes": [True]}, max_rows=1)
    found = _check(rows.release(**PRICES["delta"]).certificate())
    assert (found.verdict, found.refused) == ("UNKNOWN", [])


def test_keys_whose_chance_nobody_counts_are_refused():
    """A threshold that shares its δ with the noise has none of its own:
    no other composition may do that.
    """
    certificate = _released("keys of few groups", "gaussian").certificate()
    assert certificate["composition"]["rule"] == "threshold_beside_noise"
    assert _check(_with(certificate, ("composition", "rule"), "gaussian")).verdict == "REFUSED"


FACTS = {
    "scale",
    "epsilon",
    "rho",
    "mu_squared",
    "threshold",
    "groups",
    "rows",
    "rows_per_group",
    "l0",
    "l1",
    "linf",
}
CLAIMS = {"epsilon", "rho", "mu_squared", "l0", "l1", "linf"}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.one_in(4)
def test_certificates_with_one_number_changed(certificate, seed):
    """Twice or half of a number is PROVED only where more is claimed, more noise is
    drawn, or a limit does not bind.
    """
    rng, places = (
        random.Random(seed),
        [(p, v) for p, v in _places(certificate) if p[-1] in FACTS and p[0] != "questions"],
    )
    for path, value in rng.sample(places, min(len(places), 12)):
        factor = rng.choice([Fraction(1, 2), 2])
        if value in (None, 0, "0/1") or (
            type(value) is int and value * factor != int(value * factor)
        ):
            continue
        changed = int(value * factor) if type(value) is int else _times(value, factor)
        found = _check(_with(certificate, path, changed))
        more = path[-1] in CLAIMS or path[-1] in ("scale", "threshold")
        if more and factor == 2:
            continue  # the safe side
        slack = path[0] == "composition" or (path[0], path[-1]) == ("charge", "delta")
        assert found.verdict == "REFUSED" or slack or "limits" in path, (path, factor)
