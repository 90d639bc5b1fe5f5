"""Both type checkers accept code as users write it, and know which kind of table comes out.

mypy has `user_code.py` among its files, so that `make test` checks it together with the package.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SETTINGS = {
    "include": ["."],
    "extraPaths": [str(HERE.parents[1] / "src")],
    "typeCheckingMode": "strict",
    "reportUnnecessaryTypeIgnoreComment": "error",
}


def checked(folder, code):
    """What pyright says of code: a sentence for each error. Skipped where pyright cannot be had."""
    pytest.importorskip("pyright", reason="pyright is not installed")
    pyright = [sys.executable, "-W", "ignore", "-m", "pyright"]
    if subprocess.run([*pyright, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("pyright cannot be started: it needs node, or a way to fetch it")
    (folder / "pyrightconfig.json").write_text(json.dumps(SETTINGS))
    (folder / "user_code.py").write_text(code)
    run = subprocess.run(
        [*pyright, "--pythonpath", sys.executable, "--outputjson"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [
        f"{e['range']['start']['line'] + 1}: {e['message']}"
        for e in json.loads(run.stdout)["generalDiagnostics"]
    ]


@pytest.mark.long
def test_pyright_accepts_user_code_in_strict_mode(tmp_path):
    assert checked(tmp_path, (HERE / "user_code.py").read_text()) == []


@pytest.mark.long
def test_pyright_refuses_what_is_wrong(tmp_path):
    code = (HERE / "user_code.py").read_text()
    wrong = [i for i, line in enumerate(code.splitlines(), 1) if "# type: ignore" in line]
    errors = checked(tmp_path, code.replace("# type: ignore", "# wrong"))
    assert {int(error.partition(":")[0]) for error in errors} == set(wrong)
    assert len(wrong) == 6
