"""Write the expected records of the golden run anew: `python tests/golden/rewrite.py`.

Run it after a change that is meant to change what people see, read the difference with git, and
commit both together. Where nothing was meant to change, it is a bug that the difference shows.
`python tests/golden/rewrite.py --check` writes nothing and names the questions that differ.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden import record
from golden.questions import QUESTIONS


def main(arguments: list[str]) -> int:
    """Write all files, or name what differs."""
    warnings.simplefilter("ignore")
    if "--check" in arguments:
        others = [
            q for q in QUESTIONS if record.on_polars(q) != record.expected(q.topic).get(q.name)
        ]
        print("\n".join(f"{q.topic}: {q.name}" for q in others) or "Nothing differs.")
        return 1 if others else 0
    for path in record.write(QUESTIONS):
        print(f"{path.stat().st_size:>9,} bytes  {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
