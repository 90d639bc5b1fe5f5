"""Build the package, and hold the wheel against what a package index and a user expect of it.

Builds the source distribution and the wheel from it, checks what is in the wheel and what its
metadata says, and asks twine. Then it installs the wheel into an environment of its own, and makes
one release there. Needs the extra `test` and a package index.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "dpframe"
RELEASE = """
import importlib.metadata, pathlib, sys, warnings
warnings.simplefilter("error")
import pandas as pd, polars as pl
import dpframe as dp
assert pathlib.Path(dp.__file__).is_relative_to(sys.prefix), dp.__file__
assert importlib.metadata.version("dpframe") == dp.__version__
rows = {"user": [1, 1, 2], "spend": [3.0, 4.0, 5.0]}
for table in (pd.DataFrame(rows), pl.DataFrame(rows)):
    budget = dp.Budget(epsilon=1.0)
    total = table.dp(unit="user", budget=budget).sum("spend", bounds=(0, 10), max_rows=2)
    out = total.release(epsilon=1.0)
    assert isinstance(out.table, type(table)) and budget.remaining.epsilon == 0
print("released", type(out.value).__name__, "with dpframe", dp.__version__)
"""


def check(holds: bool, what: str) -> None:
    if not holds:
        raise SystemExit(f"The wheel is not fit to publish: {what}.")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    check(
        done.returncode == 0,
        f"{' '.join(map(str, command[1:4]))} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}",
    )
    return done.stdout


def contents(wheel: Path) -> None:
    """The wheel has every file of the package, the licence and its metadata, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    inside = {name for name in names if ".dist-info/" in name}
    files = {p.relative_to(PACKAGE.parent).as_posix() for p in PACKAGE.rglob("*") if p.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    check(names - inside == files, f"files differ from src: {sorted((names - inside) ^ files)[:5]}")
    check(
        "dpframe/py.typed" in names,
        "py.typed is missing, so type checkers would not read the package",
    )
    check(any(name.endswith("licenses/LICENSE") for name in inside), "the licence is missing")


def metadata(wheel: Path, project: dict[str, object]) -> None:
    """What the index shows is what pyproject.toml says."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = HeaderParser().parsestr(archive.read(name).decode())
    check(
        (said["Name"], said["Version"]) == (project["name"], project["version"]),
        "name or version differ",
    )
    check(said["License-Expression"] == project["license"], "the licence differs")
    check(said["Requires-Python"] == project["requires-python"], "requires-python differs")
    check(
        said["Description-Content-Type"] == "text/markdown", "the README is not shown as Markdown"
    )
    check(set(said.get_all("Classifier")) == set(project["classifiers"]), "classifiers differ")
    check(
        len(said.get_all("Project-URL") or []) == len(project["urls"]), "project URLs are missing"
    )
    needed = [line for line in said.get_all("Requires-Dist") if "extra ==" not in line]
    check(len(needed) == len(project["dependencies"]), f"dependencies differ: {needed}")
    check(
        set(said.get_all("Provides-Extra")) == set(project["optional-dependencies"]),
        "extras differ",
    )


def main() -> None:
    begun = time.monotonic()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", out)
        (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
        contents(wheel)
        metadata(wheel, project)
        run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
        built = time.monotonic()
        venv.create(out / "clean", with_pip=True)
        python = out / "clean" / "bin" / "python"
        run(
            python,
            "-m",
            "pip",
            "install",
            "--no-compile",
            "--quiet",
            "--disable-pip-version-check",
            wheel,
        )
        said = run(python, "-I", "-c", RELEASE, cwd=out)
        run(python, "-I", "-m", "dpframe", "--help", cwd=out)
        sizes = f"{wheel.stat().st_size / 1e6:.2f} MB, source {source.stat().st_size / 1e6:.2f} MB"
        name = wheel.name
    print(f"{name}: {sizes}; {said.strip()}.")
    print(
        f"Built and checked in {built - begun:.0f} s, installed and run in "
        f"{time.monotonic() - built:.0f} s."
    )


if __name__ == "__main__":
    main()
