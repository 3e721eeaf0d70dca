"""How an API server is reached: its address, what is trusted, through which proxy, and who asks.

Apart from what connects, as whoever only reads a kubeconfig needs no TLS.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from composeplat.cluster.credentials import CredentialSource, static_credentials
from composeplat.system.proxies import Proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How a server is reached; its authority is named by a file, or given as text."""

    host: str
    port: int
    credentials: CredentialSource = field(default_factory=static_credentials, repr=False, compare=False)
    authority: str = ""
    """The certificate that signed the server's; none means what the machine trusts."""
    authority_data: str = ""
    verify: bool = True
    server_name: str = ""
    """The name in the server's certificate, where that is not the host."""
    plain: bool = False
    prefix: str = ""
    proxy: Proxy | None = None
    context: str = ""
    """The name of the kubeconfig's context, for messages."""

    @property
    def address(self) -> str:
        return f"{'http' if self.plain else 'https'}://{self.host}:{self.port}{self.prefix}"
