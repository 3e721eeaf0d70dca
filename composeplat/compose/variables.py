"""Variables in layers: the value of ``${NAME}``, and the layer that it comes from.

Owns the order of the layers (shell, env files, platform) and the two feature flags.
Must not read the process environment: the caller passes mappings, so that the same input gives the same output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace

from composeplat.compose.values import BadValue, parse_bool
from composeplat.diagnostics import ComposeplatError, Exit, Span
from composeplat.system.records import mutable, record

#: If this variable is false, no registry is asked.
IMAGE_PORTS_VARIABLE = "PLATFORM_IMAGE_PORTS"

_SURROGATES = re.compile("[\ud800-\udfff]")

SHELL, ENV_FILE, PLATFORM = "shell", ".env", "platform"

VOLUME_AFFINITY = "OKTETO_COMPOSE_VOLUME_AFFINITY_ENABLED"
WAKE_IN_ORDER = "OKTETO_COMPOSE_DEPENDS_ON_ENABLED"


class BadSetting(ComposeplatError):
    """An option, or its variable, has an invalid value."""

    exit_code = Exit.USAGE


@record
class Variables:
    """The layers, highest first; a name in an earlier one hides it in the later ones."""

    layers: tuple[tuple[str, Mapping[str, str]], ...] = ()
    hint_for: Callable[[str], str] = field(default=lambda _: "", compare=False)
    """Returns how to set a variable that no layer has; empty if nothing special is known."""

    @classmethod
    def from_layers(
        cls,
        shell: Mapping[str, str] | None = None,
        env_file: Mapping[str, str] | None = None,
        platform: Mapping[str, str] | None = None,
    ) -> Variables:
        return cls(((SHELL, shell or {}), (ENV_FILE, env_file or {}), (PLATFORM, platform or {})))

    @classmethod
    def from_files(
        cls, shell: Mapping[str, str], env_files: Iterable[tuple[str, Mapping[str, str]]], platform: Mapping[str, str]
    ) -> Variables:
        """Make a layer of each env file, by its name; a later file hides earlier ones."""
        return cls(((SHELL, shell), *reversed(tuple(env_files)), (PLATFORM, platform)))

    def lookup(self, name: str) -> str | None:
        for _, layer in self.layers:
            if name in layer:
                return _as_text(layer[name])
        return None

    def layer_of(self, name: str) -> str | None:
        return next((label for label, layer in self.layers if name in layer), None)

    def with_defaults(self, label: str, more: Mapping[str, str]) -> Variables:
        """Add a layer above the platform's: the variables of an included file's own env file."""
        above, platform = self.split()
        return replace(self, layers=(*above.layers, (label, more), *platform.layers))

    def split(self) -> tuple[Variables, Variables]:
        """Return the layers above those of the platform, and these."""
        above = tuple(layer for layer in self.layers if layer[0] != PLATFORM)
        platform = tuple(layer for layer in self.layers if layer[0] == PLATFORM)
        return replace(self, layers=above), replace(self, layers=platform)

    def with_built_in(self, environment: str, namespace: str, domain: str) -> Variables:
        """Add the built-in variables: Compose's project name above all layers, ours in the platform's."""
        compose = ("project", {"COMPOSE_PROJECT_NAME": environment})
        placed = self.with_place(namespace, domain)
        return replace(self, layers=(compose, *placed.layers, (PLATFORM, {"PLATFORM_NAME": environment})))

    def with_place(self, namespace: str, domain: str) -> Variables:
        """Add the built-in variables that are known before the environment's name, which may refer to them."""
        names = {"PLATFORM_NAMESPACE": namespace, "PLATFORM_DOMAIN": domain}
        return replace(self, layers=(*self.layers, (PLATFORM, {k: v for k, v in names.items() if v})))

    def flag(self, name: str, *, default: bool) -> bool:
        """Read a flag; return the default for a value that is no boolean."""
        found = self._boolean(name)
        return default if found is None else found

    def switch(self, name: str, *, default: bool = False) -> bool:
        """Read a setting or a feature flag: with a typo, the default may be the opposite of what is wanted."""
        text = self.lookup(name)
        if text and self._boolean(name) is None:
            raise BadSetting(f"{name} ({self.layer_of(name)}) must be true or false")
        return self.flag(name, default=default)

    def _boolean(self, name: str) -> bool | None:
        text = (self.lookup(name) or "").strip()
        try:
            return text == "1" if text in ("0", "1") else parse_bool(text)
        except BadValue:
            return None


def _as_text(value: str) -> str:
    """Replace bytes of a shell's variable that are not UTF-8 with U+FFFD: no output could contain them."""
    return value if value.isascii() else _SURROGATES.sub("\ufffd", value)


_SECRET_NAME = re.compile(
    r"PASS(?:WORD|WD|PHRASE)?(?:$|_)|SECRET|TOKEN|CREDENTIAL|PRIVATE|(?:API|ACCESS|AUTH|ENCRYPTION|SIGNING)_?KEY|_KEY$|^KEY$|_PWD$|_DSN$",
    re.IGNORECASE,
)
#: The value is the place of the secret, which messages must show.
_PLACE_NAME = re.compile(r"_(?:FILE|PATH|DIR)$", re.IGNORECASE)
#: Settings that name an object, or are a boolean.
_NOT_SECRET = ("PLATFORM_TLS_SECRET", "PLATFORM_PULL_SECRET")
#: A shorter value occurs in many texts; masking it would hide text that is no secret.
_MIN_SECRET_CHARS = 4
_MIN_SECRET_LINE_CHARS = 8


#: Variables that decide the namespace and the files can't be stored in the namespace, which is known only after them.
NOT_STORED = re.compile(r"COMPOSE_|PLATFORM_NAME\Z|PLATFORM_NAMESPACE\Z")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z", re.ASCII)


def is_variable_name(name: str) -> bool:
    return _VARIABLE_NAME.match(name) is not None


def asks_registries(environment: Mapping[str, str]) -> bool:
    """Return whether registries are asked for the ports and the users of images."""
    return Variables.from_layers(environment, {}, {}).flag(IMAGE_PORTS_VARIABLE, default=True)


def storable(values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that a namespace may store as variables."""
    return {name: text for name, text in values.items() if is_variable_name(name) and not NOT_STORED.match(name)}


def worth_hiding(values: Iterable[str]) -> tuple[str, ...]:
    """Return the confidential values that are long enough to mask, and their lines, as logs have them."""
    found: dict[str, None] = {}
    for value in values:
        if len(value) >= _MIN_SECRET_CHARS:
            found[value] = None
            found |= dict.fromkeys(line for line in value.splitlines() if len(line) >= _MIN_SECRET_LINE_CHARS)
    return tuple(found)


def looks_secret(name: str) -> bool:
    """Whether a variable's name says that its value is confidential."""
    return name not in _NOT_SECRET and _SECRET_NAME.search(name) is not None and _PLACE_NAME.search(name) is None


@mutable
class VariableReference:
    """A variable that the definition refers to."""

    name: str
    default: str | None = None
    required: bool = False
    value: str | None = None
    layer: str | None = None
    """The layer of the value at the first use: an included file may have variables of its own."""
    span: Span | None = None
    """The place of the first use in a file."""


@mutable
class VariableReferences:
    """Every variable that a definition refers to, in the order of first use."""

    _kept: dict[str, VariableReference] = field(default_factory=dict)
    length: int = 0
    """Of all substituted values."""
    _secrets: set[str] = field(default_factory=set)
    """The values of variables with secret-looking names; an included file may have another value of a name."""

    def add(
        self, name: str, variables: Variables, *, default: str | None, required: bool, span: Span | None = None
    ) -> None:
        reference = self._kept.get(name)
        if reference is None:
            reference = VariableReference(name, value=variables.lookup(name), layer=variables.layer_of(name), span=span)
            self._kept[name] = reference
        if looks_secret(name):
            self._secrets.add(variables.lookup(name) or "")
        reference.required = reference.required or required
        if reference.default is None:
            reference.default = default

    @property
    def confidential(self) -> tuple[str, ...]:
        """The values of variables with secret-looking names, longest first."""
        return tuple(sorted((v for v in self._secrets if len(v) >= _MIN_SECRET_CHARS), key=lambda v: (-len(v), v)))

    def __iter__(self) -> Iterator[VariableReference]:
        return iter(self._kept.values())
