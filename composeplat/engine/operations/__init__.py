"""The operations on a stack, a module each, and each a function from a plan to an outcome.

Owns their order: look before acting, act, wait, tidy up.
What is decided on the way is decided elsewhere, by functions of data: :mod:`~composeplat.engine.preflight`,
:mod:`~composeplat.engine.pulumi_args`, :mod:`~composeplat.engine.failure_causes`,
:mod:`~composeplat.cluster.conditions`.
"""
