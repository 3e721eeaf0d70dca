"""The Pulumi resources of a plan.

Owns :class:`~composeplat.components.stack.ComposeStack`, and below it a component for each service, volume and endpoint
set. It is the only room that imports the SDKs of providers.
Must not decide anything about Compose or Kubernetes: a component registers its part of the plan.
A rule of Compose whose test needs Pulumi belongs elsewhere.

Type tokens and the names of children are public: the state of existing stacks has them.
"""
