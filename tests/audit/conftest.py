"""What the checks of this folder share: modules of the harness beside them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
