"""Whose an object is: of a tool that would change it back, of a controller, or of nobody.

Owns the marks by which tools know their objects. ``platform import`` takes over objects of nobody: those
that were applied by hand, by ``kubectl apply`` or from the output of a converter.
Must not decide on an object: :mod:`~composeplat.engine.adoption` does.
"""

from __future__ import annotations

from collections.abc import Mapping

from composeplat.cluster.snapshot import Object
from composeplat.names import ENVIRONMENT_LABEL, MANAGED_BY, MANAGED_BY_LABEL

#: The annotation of kubectl with the manifest that it applied last.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
#: A label or annotation with this key, and the tool that applies the object again and again.
_TOOLS = {
    "meta.helm.sh/release-name": "Helm release",
    "argocd.argoproj.io/tracking-id": "Argo CD",
    "argocd.argoproj.io/instance": "Argo CD application",
    "kustomize.toolkit.fluxcd.io/name": "Flux kustomization",
    "helm.toolkit.fluxcd.io/name": "Flux release",
    "olm.owner": "operator",
    "pulumi.com/patchFieldManager": "another Pulumi program",
}
#: Tools that leave the name of their own in ``managedFields``, and nothing else.
_MANAGERS = {"pulumi-kubernetes": "another Pulumi program", "argocd-controller": "Argo CD", "helm": "Helm"}
#: Programs that write an object once, and never by themselves.
_MANUAL_MANAGERS = ("kubectl", "kompose", "before-first-apply")
_MADE_BY_HAND = ("", "kompose", "kubectl")


def owner_of(found: Object) -> str:
    """Return the owner of an object, for people; empty if nothing claims it."""
    metadata = found["metadata"]
    controller = next((owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")), None)
    owner = controller or next(iter(metadata.get("ownerReferences") or ()), None)
    if owner is not None:
        return f"{owner.get('kind')} '{owner.get('name')}'"
    labels: Mapping[str, str] = metadata.get("labels") or {}
    manager = str(labels.get(MANAGED_BY_LABEL) or "")
    if manager == MANAGED_BY and ENVIRONMENT_LABEL in labels:
        return f"environment '{labels[ENVIRONMENT_LABEL]}'"
    for key, tool in _TOOLS.items():
        value = labels.get(key) or (metadata.get("annotations") or {}).get(key)
        if value:
            return f"{tool} '{value}'" if tool[0].isupper() and " " in tool else tool
    if manager not in _MADE_BY_HAND:
        return f"'{manager}'"
    return next((tool for name in managers_of(found) for mark, tool in _MANAGERS.items() if name.startswith(mark)), "")


def managers_of(found: Object) -> list[str]:
    """Return the names of the field managers of an object."""
    return [str(entry.get("manager", "")) for entry in found["metadata"].get("managedFields") or ()]


def is_manual(manager: str) -> bool:
    """Check for a field manager that wrote an object once: ``kubectl apply``, ``kubectl edit``, a converter."""
    return manager.startswith(_MANUAL_MANAGERS)
