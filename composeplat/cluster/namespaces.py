"""Namespaces: made where they are missing, and fit for pods.

Must not know whose they are: none is ever deleted.
"""

from __future__ import annotations

import http.client
import time

from composeplat.cluster.api import Api, ApiError
from composeplat.names import MANAGED_BY

_ACCOUNT_WITHIN = 30.0
_ENOUGH = 0.1


def make_namespace(api: Api, name: str) -> None:
    """Make a namespace, and wait for its service account: pods are refused until it is there."""
    labels = {"app.kubernetes.io/managed-by": MANAGED_BY}
    api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    deadline = time.monotonic() + _ACCOUNT_WITHIN
    while time.monotonic() < deadline:
        try:
            api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        except ApiError as error:
            if error.status != http.client.NOT_FOUND:
                # Whoever may not look goes on.
                return
            time.sleep(_ENOUGH)
        else:
            return
