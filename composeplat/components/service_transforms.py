"""The transforms of a service: what a program does to its resources, and the message about one that fails.

Owns that message: Pulumi writes an error of a transform without its service, between two tracebacks of gRPC.
Must not know what a transform changes.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Sequence
from functools import wraps

import pulumi

#: Pulumi's own: each gets every resource of a service, with its type, name, properties and options.
Transforms = pulumi.ResourceTransform | Sequence[pulumi.ResourceTransform]


def checked_transforms(service: str, transforms: Transforms) -> list[pulumi.ResourceTransform]:
    """Return the transforms of a service as functions that report which of them failed, and for which resource."""
    listed = transforms if isinstance(transforms, Sequence) else [transforms]
    return [_checked(service, transform) for transform in listed]


def _checked(service: str, transform: pulumi.ResourceTransform) -> pulumi.ResourceTransform:
    @wraps(transform)
    async def call(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        try:
            returned = transform(args)
            return _check(await returned if inspect.isawaitable(returned) else returned)
        except Exception as error:
            pulumi.log.error(_describe(service, transform, args, error))
            raise

    return call


def _check(result: pulumi.ResourceTransformResult | None) -> pulumi.ResourceTransformResult | None:
    if result is not None and not isinstance(result, pulumi.ResourceTransformResult):
        raise TypeError(f"must return None or a ResourceTransformResult, not {type(result).__name__}")
    return result


def _describe(
    service: str, transform: pulumi.ResourceTransform, args: pulumi.ResourceTransformArgs, error: Exception
) -> str:
    name = getattr(transform, "__qualname__", type(transform).__qualname__)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    place = f", at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return (
        f"services.{service}: transform '{name}' failed for {args.type_} '{args.name}'{place}:"
        f" {type(error).__name__}: {error}"
    )
