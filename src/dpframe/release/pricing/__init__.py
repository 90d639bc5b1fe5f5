"""The price of a release, how it is divided, and the noise that each part of it buys."""

from dpframe.release.pricing.calibrate import (
    Drawn,
    NoisePlan,
    Part,
    assembled,
    check_noise,
    choice_of,
    gaussians_of,
    joined,
    laplace_of,
    laplaces_of,
    moved_measures,
    parted,
    pieces,
    ways,
    worth,
)
from dpframe.release.pricing.events import (
    UNNAMED,
    events_of,
)
from dpframe.release.pricing.pld import (
    largest_parts,
)
from dpframe.release.pricing.price import (
    Price,
    Terms,
    described_price,
    priced,
    read_price,
)
from dpframe.release.pricing.zcdp import (
    drawn_for_rho,
    laplace_for_epsilon,
)

__all__ = [
    "UNNAMED",
    "Drawn",
    "NoisePlan",
    "Part",
    "Price",
    "Terms",
    "assembled",
    "check_noise",
    "choice_of",
    "described_price",
    "drawn_for_rho",
    "events_of",
    "gaussians_of",
    "joined",
    "laplace_for_epsilon",
    "laplace_of",
    "laplaces_of",
    "largest_parts",
    "moved_measures",
    "parted",
    "pieces",
    "priced",
    "read_price",
    "ways",
    "worth",
]
