"""Replaces ``curl`` for the commands of pages: fetches one address, and prints what it answers.

Hosts below localhost are this machine, as for the real one; port 443 is where ``HTTPS_PORT`` says, as the cluster of
the tests leaves the machine's own alone. An address that is not served yet is asked again for a while, and one that
never is, is a failure, where the real one would print what the server says.
"""

from __future__ import annotations

import argparse
import http.client
import os
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

_TIMEOUT_S = 20


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cacert", default="")
    parser.add_argument("url")
    options = parser.parse_args()
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            status, text = fetch(options.url, options.cacert)
        except ssl.SSLError as error:
            sys.stderr.write(f"curl: {error}\n")
            return 60
        except OSError as error:
            status, text = 0, f"curl: {error}\n"
        if status == http.client.OK or time.monotonic() > deadline:
            break
        time.sleep(0.2)
    done = status == http.client.OK
    (sys.stdout if done else sys.stderr).write(text)
    return 0 if done else 22


def fetch(url: str, authority: str) -> tuple[int, str]:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    here = "127.0.0.1" if host.endswith("localhost") else host
    with socket.create_connection((here, int(os.environ["HTTPS_PORT"]) if port == 443 else port), timeout=10) as plain:
        connection = http.client.HTTPConnection(parts.netloc)
        connection.sock = plain
        if parts.scheme == "https":
            context = ssl.create_default_context(cafile=authority or None)
            connection.sock = context.wrap_socket(plain, server_hostname=host)
        connection.request("GET", parts.path or "/")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


if __name__ == "__main__":
    sys.exit(main())
