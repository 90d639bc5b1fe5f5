"""How anyone can check the claims: neighbours of a table, brute force over small tables, and audits of what comes out.

None of this is private: it is for tables that were made up. `check_query` holds the claimed sensitivities of a question
against every small table there is; `audit` holds a claimed (ε, δ) against what a release puts out.
"""

from dpframe.audit.brute import QueryCheck, check_query
from dpframe.audit.tables import neighbours
from dpframe.audit.trials import Audit, audit

__all__ = ["Audit", "QueryCheck", "audit", "check_query", "neighbours"]
