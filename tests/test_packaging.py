"""What is said in several places about the package is said alike.
`make wheel` builds it and looks inside.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import dpframe as dp

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = (ROOT / "CITATION.cff").read_text()
CHANGES = (ROOT / "CHANGELOG.md").read_text()


def test_the_version_is_one():
    assert PROJECT["version"] == dp.__version__
    assert f"\nversion: {dp.__version__}\n" in CITATION
    assert re.search(rf"^## {re.escape(dp.__version__)} ", CHANGES, re.M)


def test_the_repository_and_the_licence_are_one():
    assert f'repository-code: "{PROJECT["urls"]["Repository"]}"' in CITATION
    assert f"license: {PROJECT['license']}\n" in CITATION
    assert all(url.startswith(PROJECT["urls"]["Repository"]) for url in PROJECT["urls"].values())


def test_this_python_is_among_those_that_are_named():
    named = {
        c.rpartition(" ")[2]
        for c in PROJECT["classifiers"]
        if c.startswith("Programming Language :: Python :: 3.")
    }
    assert "{}.{}".format(*sys.version_info) in named
    assert PROJECT["requires-python"] == f">={min(named, key=lambda v: int(v[2:]))}"


def test_each_version_of_the_changelog_has_the_usual_parts():
    for version in CHANGES.split("\n## ")[1:]:
        titles = re.findall(r"^### (.*)$", version, re.M)
        assert titles
        assert titles == [
            title for title in ("Added", "Changed", "Removed", "Fixed") if title in titles
        ]
        assert not re.search(r"^- ", version.partition("### ")[0], re.M)


def test_each_file_that_the_makefile_names_is_there():
    """A tier that is rarely run would name a file that has moved."""
    targets = ["test-long", "test-oldest", "test-newest", "fuzz", "bench"]
    typed = subprocess.run(
        ["make", "--dry-run", "--always-make", *targets],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    named = {word for word in typed.split() if re.match(r"(tests|benchmarks|src)(/|$)", word)}
    assert {"src", "tests/oldest.txt", "tests/release/shown/test_release.py"} <= named
    assert not [name for name in named if not (ROOT / name).exists()]
