"""Parse ``models``: those of the file with their endpoints, and those that a service uses."""

from __future__ import annotations

from urllib.parse import urlsplit

from composeplat.compose.ai_model import AiModel, ModelUse
from composeplat.compose.nodes import Mapping
from composeplat.compose.origins import model_path
from composeplat.compose.parse.fields import Field, Section
from composeplat.compose.values import BadValue
from composeplat.names import is_env_name

_SERVICE_PATTERN = "services.*.models.*"


def parse_models(section: Section) -> dict[str, AiModel]:
    found = section.get("models")
    return {name: _model(name, place) for name, place in found.members() if found} if found else {}


def _model(name: str, place: Field) -> AiModel:
    section = place.section("models.*")
    if section is None:
        return AiModel(name=name)
    if section.get("model") is None:
        place.report("missing-key", "must have 'model', the model's name", "write it as in model: ai/smollm2")
    return AiModel(name=name, model=section.text("model"), endpoint=section.value("x-endpoint", _parse_url, ""))


def _parse_url(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url or any(character.isspace() for character in text):
        raise BadValue("must be a URL such as http://ollama:11434/v1")
    return text


def parse_model_uses(section: Section) -> tuple[ModelUse, ...]:
    """Read a list of models, or a mapping with the names of their variables."""
    found = section.get("models")
    if found is None:
        return ()
    if isinstance(found.node, Mapping):
        return tuple(_use(name, place, place) for name, place in found.members())
    listed = [(item.text(), item) for item in found.items("a list or a mapping")]
    return tuple(_use(name, item, None) for name, item in listed if name)


def _use(name: str, place: Field, whole: Field | None) -> ModelUse:
    place.ctx.origins.put_alias(model_path(str(place.path[1]), name), place.node, place.path)
    section = whole.section(_SERVICE_PATTERN) if whole is not None and not whole.is_null else None
    prefix = name.upper().replace("-", "_").replace(".", "_")
    use = ModelUse(
        name=name,
        endpoint_var=_variable(section, "endpoint_var") or f"{prefix}_URL",
        model_var=_variable(section, "model_var") or f"{prefix}_MODEL",
    )
    if not is_env_name(use.endpoint_var) or not is_env_name(use.model_var):
        place.report("invalid-name", "is a model whose name can't be that of a variable", "rename the model")
    return use


def _variable(section: Section | None, key: str) -> str:
    return section.value(key, _parse_variable, "") if section else ""


def _parse_variable(text: str) -> str:
    if not is_env_name(text):
        raise BadValue("must be the name of a variable: letters, digits and '_', not beginning with a digit")
    return text
