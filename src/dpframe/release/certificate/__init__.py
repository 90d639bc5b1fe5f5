"""The certificate of a release: what its privacy claim rests on, as a JSON
document that others can check.
"""

from dpframe.release.certificate.document import certified, charged_facts, document
from dpframe.release.certificate.measures import noisy
from dpframe.release.certificate.rationals import text
from dpframe.release.certificate.total_facts import Ids, Read, sensitivity_facts, total_facts

__all__ = [
    "Ids",
    "Read",
    "certified",
    "charged_facts",
    "document",
    "noisy",
    "sensitivity_facts",
    "text",
    "total_facts",
]
