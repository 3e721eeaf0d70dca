"""Namespaces: creating one, waiting until it accepts pods, and whether one is being deleted.

Must not know who uses a namespace, so it never deletes one.
"""

from __future__ import annotations

import http.client

from composeplat.cluster.api import Api, ApiError
from composeplat.names import MANAGED_BY, MANAGED_BY_LABEL
from composeplat.system.deadline import Deadline, poll

_ACCOUNT_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.1


def is_ending(api: Api, name: str) -> bool:
    """Return whether a namespace is being deleted: it accepts no new objects. False if this user may not see it."""
    try:
        found = api.find(f"/api/v1/namespaces/{name}")
    except ApiError as error:
        if error.status != http.client.FORBIDDEN:
            raise
        return False
    return found is not None and "deletionTimestamp" in found["metadata"]


def make_namespace(api: Api, name: str) -> None:
    """Create a namespace, and wait for its service account: without it pods are refused.

    Who may create namespaces need not be allowed to patch one, as an apply does.
    """
    labels = {MANAGED_BY_LABEL: MANAGED_BY}
    try:
        api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    except ApiError as error:
        # Another run was faster.
        if error.status != http.client.CONFLICT:
            raise

    def may_have_account() -> bool:
        try:
            api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
        except ApiError as error:
            # An account that may not read it does not wait.
            return error.status != http.client.NOT_FOUND
        return True

    poll(may_have_account, Deadline(_ACCOUNT_TIMEOUT_S), interval_s=_POLL_INTERVAL_S)
