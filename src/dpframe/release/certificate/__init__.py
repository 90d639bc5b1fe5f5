"""The certificate of a release: what its privacy claim rests on, as a JSON document that others can check."""

from dpframe.release.certificate.document import certified, charged_facts

__all__ = ["certified", "charged_facts"]
