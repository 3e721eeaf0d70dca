"""A check as data: the findings about a definition, and the verdicts that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from composeplat.codes import Effect
from composeplat.compatibility.entries import Entry
from composeplat.compatibility.explanation import Statement
from composeplat.diagnostics import Diagnostic


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference from Compose: its place, its effect, and the entries of ``compose.platform.yaml`` that mend it."""

    diagnostic: Diagnostic
    effect: Effect
    fix: tuple[Entry, ...] = ()
    is_honored: bool = False
    """Whether full mode, which is off, honors the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceCheck:
    service: str
    kind: str
    findings: tuple[Finding, ...]
    explain: Callable[[], tuple[Statement, ...]]
    """Make the explanation, which most readers of a check leave out."""

    @property
    def verdict(self) -> Effect:
        return _worst(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    environment: str
    namespace: str
    services: tuple[ServiceCheck, ...]
    findings: tuple[Finding, ...]
    """About the file as a whole."""
    notes: tuple[str, ...]
    """Questions without an answer."""
    is_valid: bool
    is_full: bool = False
    """Whether the definition was read in full mode."""

    @property
    def verdict(self) -> Effect:
        return max((*(s.verdict for s in self.services), _worst(self.findings)), key=lambda effect: effect.rank)

    @property
    def all_findings(self) -> tuple[Finding, ...]:
        return (*(finding for service in self.services for finding in service.findings), *self.findings)

    @property
    def honored(self) -> tuple[Diagnostic, ...]:
        """The keys that full mode would honor, each place once: services may share an anchor."""
        found = {f.diagnostic.span: f.diagnostic for f in self.all_findings if f.is_honored}
        return tuple(found.values())


def _worst(findings: Iterable[Finding]) -> Effect:
    return max((finding.effect for finding in findings), key=lambda effect: effect.rank, default=Effect.NONE)
