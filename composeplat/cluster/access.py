"""How an API server is reached: its address, what is trusted, and who asks.

Apart from what connects, as whoever only reads a kubeconfig needs no TLS.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a server is reached; certificates and keys are named by a file, or given as text."""

    host: str
    port: int
    token: str = field(default="", repr=False)
    basic: str = field(default="", repr=False)
    """User and password, as HTTP wants them."""
    authority: str = ""
    """The certificate that signed the server's; none means what the machine trusts."""
    authority_data: str = ""
    certificate: str = ""
    key: str = ""
    certificate_data: str = field(default="", repr=False)
    key_data: str = field(default="", repr=False)
    verify: bool = True
    server_name: str = ""
    """The name in the server's certificate, where that is not the host."""
    plain: bool = False
    prefix: str = ""
    context: str = ""
    """The name of the kubeconfig's context, for messages."""

    @property
    def address(self) -> str:
        return f"{'http' if self.plain else 'https'}://{self.host}:{self.port}{self.prefix}"
