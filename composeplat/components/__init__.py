"""Pulumi resources of a plan: the one place that knows the resource SDKs.

Owns :class:`~composeplat.components.stack.ComposeStack`, and below it a component for each service, volume and endpoint
set.
Must not decide anything about Compose or Kubernetes: a component is a thin loop over its part of the plan.
If a rule of Compose needs Pulumi to be tested, it is in the wrong package.

Type tokens and child names are public: state hangs on them.
"""
