"""Checks of privacy claims: neighbours of a table, brute force over small tables,
and audits of released outcomes.

None of this is private: it is for made-up tables. `check_query` compares the claimed sensitivities
of a question with the changes between all small neighbouring tables. `audit` tests a claimed (ε, δ)
on the outcomes of a release. `replay` runs a release on two tables with the same noisy answers, and
computes the exact loss of these.
"""

from dpframe.audit.brute import QueryCheck, check_query
from dpframe.audit.neighbouring import neighbours
from dpframe.audit.replaying import Replay, assert_private, replay
from dpframe.audit.trials import Audit, audit

__all__ = [
    "Audit",
    "QueryCheck",
    "Replay",
    "assert_private",
    "audit",
    "check_query",
    "neighbours",
    "replay",
]
