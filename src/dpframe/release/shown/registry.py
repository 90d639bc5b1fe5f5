"""A privacy statement as an entry of the public registry of deployments of
differential privacy, in YAML.

The fields are those of the registry's template. A statement knows how a release was made. Only
people know what it is for, who curates the data and who may use it: what they do not type is left
empty, with a note to fill it in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpframe.errors import InvalidArgument
from dpframe.fields import FieldDict, Fields

TYPED = (
    "name",
    "curator",
    "curator_type",
    "description",
    "intended_use",
    "region",
    "sector",
    "authors",
)
_FILL = "  # fill in"


def registry_entry(items: Fields, typed: Fields) -> str:
    """An entry of the registry. Input: a statement; what was typed besides.
    Errors: InvalidArgument.
    """
    for name, value in typed.items():
        if name not in TYPED:
            raise InvalidArgument(
                f"to_registry({name}=...): it takes {', '.join(f'{one}=' for one in TYPED)}."
            )
        if not isinstance(value, str) and not (
            name == "authors" and isinstance(value, (list, tuple))
        ):
            raise InvalidArgument(f"to_registry({name}=...): a text, such as {name}='...'.")
    return "\n".join(_lines(_entry(items, typed))) + "\n"


def _implementation(items: Fields) -> FieldDict:
    mechanisms = [
        f"{row['column']}: {row['mechanism']}, scale {row['scale']:.6g}"
        for row in items["mechanisms"]
        if row["scale"]
    ]
    return {
        "preprocessing_and_hyperparameter_tuning": "; ".join(
            items.get("chosen", {}).get("reason", ["None."])
        ),
        "mechanisms": "; ".join(mechanisms),
        "composition": f"Accountant {items['budget']['accountant']}.",
        "post_processing": " ".join(items.get("post_processing", ["None."])),
        "utility": items["bias"],
        "additional_information": items["implementation"]["how"],
    }


def _entry(items: Fields, typed: Fields) -> FieldDict:
    loss, said = items["guarantee"], {name: typed.get(name, "") for name in TYPED}
    size = {key: loss[key] for key in ("epsilon", "rho") if key in loss}
    name = said["name"] or items.get("name") or ""
    authors, pure = said["authors"] or [""], "Approximate DP" if loss["delta"] else "Pure DP"
    return {
        "url_slug": re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"),
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": [
                    {
                        "data_curator_name": said["curator"],
                        "data_curator_type": said["curator_type"],
                    },
                ],
                "description": said["description"],
                "intended_use": said["intended_use"],
                "data_product_type": "Synthetic data"
                if "table_rounds" in _laws(items)
                else "Summary statistics",
                "data_product_region": said["region"],
                "data_product_sector": said["sector"],
                "publication_date": items["drawn"][:10],
            },
            "dp_variant": {
                "variant_name": "Zero-concentrated DP" if "rho" in loss else pure,
                "data_domain": "; ".join(row["step"] for row in items["bounds"]),
                "unprotected_quantities": items["keys"],
            },
            "privacy_loss": {
                "privacy_unit": items["unit_of_privacy"],
                "privacy_unit_details": items["neighbours"]["meaning"],
                "privacy_parameters": {
                    **size,
                    **({"delta": loss["delta"]} if loss["delta"] else {}),
                },
                "privacy_parameters_details": f"{loss['kind']}; for "
                f"{loss['charged_for_queries']} queries together.",
            },
            "deployment_model": {
                "model_name": "Central",
                "trust_assumptions": items["trust_model"],
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": _implementation(items),
            "administrative": {
                "status": "Draft",
                "registry_authors": [authors] if isinstance(authors, str) else list(authors),
                "tier": 3,
            },
        },
    }


def _laws(items: Fields) -> set[str]:
    return {row["mechanism"] for row in items["mechanisms"]}


def _lines(value: Fields, indent: str = "") -> Iterator[str]:
    """A mapping as lines of YAML.
    Texts are written as JSON texts are, which YAML reads as they are.
    """
    for name, part in value.items():
        match part:
            case Mapping():
                yield f"{indent}{name}:"
                yield from _lines(part, f"{indent}  ")
            case Sequence() if not isinstance(part, str):
                yield f"{indent}{name}:"
                for item in part:
                    first, *rest = (
                        _lines(item, f"{indent}    ")
                        if isinstance(item, Mapping)
                        else [_scalar(item)]
                    )
                    yield f"{indent}  - {first.strip()}"
                    yield from rest
            case _:
                yield f"{indent}{name}: {_scalar(part)}"


def _scalar(value: Any) -> str:
    if isinstance(value, float):  # YAML 1.1 reads 1e-06 as a text
        digits, _, power = repr(value).partition("e")
        return f"{digits if '.' in digits else f'{digits}.0'}e{power}" if power else digits
    return json.dumps(value, ensure_ascii=False) + ("" if value else _FILL)
