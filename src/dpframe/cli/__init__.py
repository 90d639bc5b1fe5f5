"""The command line: `dpframe ledger ...` and `dpframe policy ...`, with one file for each group of commands."""

from dpframe.cli.running import entry, main

__all__ = ["entry", "main"]
