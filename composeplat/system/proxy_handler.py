"""Requests of :mod:`urllib` through the proxy of an address.

Owns that a redirect has the proxy of its own address. Must not know who requests what.
It is apart from the grammar of proxies as that module is loaded by every command, and this library is slow to load.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping

from composeplat.system.proxies import find_proxy_for


class ThroughProxies(urllib.request.BaseHandler):
    """Leads every request through the proxy that is named for its address: that of a redirect too."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def http_request(self, request: urllib.request.Request) -> urllib.request.Request:
        proxy = find_proxy_for(self._environment, request.full_url)
        if proxy is not None:
            request.set_proxy(proxy.netloc, "http")
            if proxy.authorization:
                request.add_unredirected_header("Proxy-authorization", proxy.authorization)
        return request

    https_request = http_request
