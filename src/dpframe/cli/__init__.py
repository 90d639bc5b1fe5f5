"""The command line: `dpframe ledger ...`, `dpframe policy ...` and `dpframe check`.

Commands about ledgers, about copies of them, and about other files have a file each.
"""

from dpframe.cli.running import entry, main

__all__ = ["entry", "main"]
