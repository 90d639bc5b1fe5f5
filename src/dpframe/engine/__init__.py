"""The only room that reads rows: native tables in and out, one compiler, integer totals."""

from dpframe.engine import combine  # noqa: F401  (registers how its steps are computed)
from dpframe.engine.native import Data, Kind, adopt, as_kind
from dpframe.engine.profile import EDGES, Profile, profile
from dpframe.engine.totals import Totals, totals, validate

__all__ = ["EDGES", "Data", "Kind", "Profile", "Totals", "adopt", "as_kind", "profile", "totals", "validate"]
