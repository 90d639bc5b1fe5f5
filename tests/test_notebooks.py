"""Every notebook runs from end to end, and is committed with its outputs."""

from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted(
    [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs/understand").glob("*.ipynb")]
)


# each starts an interpreter of its own; pages of `docs` with the same examples are quick
@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# of the kernel's own machinery
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::RuntimeWarning")
def test_it_runs(path):
    notebook = nbformat.read(path, as_version=4)
    # seconds, for a loaded machine; it takes a few
    patience = {"timeout": 1200, "startup_timeout": 600}
    nbclient.NotebookClient(
        notebook, resources={"metadata": {"path": str(path.parent)}}, **patience
    ).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_its_outputs_are_committed(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), (
        "run it from a fresh kernel"
    )
    outputs = [output for cell in code for output in cell.outputs]
    assert not any(output.output_type == "error" for output in outputs)
    charts = [
        output for output in outputs if "application/vnd.vegalite.v6+json" in output.get("data", {})
    ]
    assert all("image/png" in output.data for output in charts), "a code host shows PNG"
    assert str(Path.home()) not in path.read_text(encoding="utf-8")
