"""How to reach an API server, as data: its address, the trusted authority, the proxy and the credentials.

Apart from the connection, so that reading a kubeconfig loads no TLS.
"""

from __future__ import annotations

from dataclasses import field

from composeplat.cluster.credentials import CredentialSource, static_credentials
from composeplat.system.proxies import Proxy, join_host_port
from composeplat.system.records import record


@record(kw_only=True)
class Access:
    """How to reach a server; its authority is a file, or text."""

    host: str
    port: int
    credentials: CredentialSource = field(default_factory=static_credentials, repr=False, compare=False)
    authority: str = ""
    """The certificate that signed the server's; empty means the authorities that the machine trusts."""
    authority_data: str = ""
    verify: bool = True
    server_name: str = ""
    """The name in the server's certificate, if that is not the host."""
    plain: bool = False
    prefix: str = ""
    proxy: Proxy | None = None
    context: str = ""
    """The name of the kubeconfig's context, for messages."""

    @property
    def netloc(self) -> str:
        return join_host_port(self.host, self.port)

    @property
    def tunnelled_host(self) -> str:
        """The ``Host`` of requests through a proxy, where the library would write it with too many brackets."""
        return self.netloc if self.proxy is not None and ":" in self.host else ""

    @property
    def address(self) -> str:
        return f"{'http' if self.plain else 'https'}://{self.netloc}{self.prefix}"
