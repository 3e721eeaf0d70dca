"""The part of the model for AI models: those of the definition, and the variables by which services know them.

Must not know YAML or Kubernetes, as :mod:`composeplat.compose.model`, which has these as fields.
"""

from __future__ import annotations

from composeplat.system.records import record


@record(kw_only=True)
class AiModel:
    name: str
    model: str = ""
    """As the endpoint knows it."""
    endpoint: str = ""
    """The URL of what serves it; empty if the definition has none."""


@record(kw_only=True)
class ModelUse:
    """A model that a service uses, and the names of its variables."""

    name: str
    endpoint_var: str
    model_var: str
