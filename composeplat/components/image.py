"""An image that is built and pushed, as a resource of the stack."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pulumi

from composeplat.model import Build
from composeplat.plan.desired import ImageBuild


def build_image(name: str, image: ImageBuild, builder: str, opts: pulumi.ResourceOptions) -> pulumi.CustomResource:
    """Register a build; its ``ref`` names the image by digest."""
    module: Any = import_module("pulumi_docker_build")
    made: pulumi.CustomResource = module.Image(
        name,
        tags=[image.reference, *image.build.tags],
        push=True,
        build_on_preview=False,
        builder={"name": builder} if builder else None,
        opts=opts,
        **_arguments(image.build),
    )
    return made


def _arguments(build: Build) -> dict[str, Any]:
    context: dict[str, Any] = {"location": build.context}
    if build.additional_contexts:
        context["named"] = {name: {"location": place} for name, place in build.additional_contexts.items()}
    dockerfile: dict[str, Any] = {}
    if build.dockerfile_inline:
        dockerfile["inline"] = build.dockerfile_inline
    elif build.dockerfile:
        dockerfile["location"] = f"{build.context.rstrip('/')}/{build.dockerfile}"
    made: dict[str, Any] = {"context": context}
    if dockerfile:
        made["dockerfile"] = dockerfile
    if build.args:
        made["build_args"] = pulumi.Output.secret(dict(build.args))
    asked = {
        "target": build.target, "labels": dict(build.labels), "no_cache": build.no_cache, "pull": build.pull,
        "platforms": list(build.platforms), "add_hosts": list(build.extra_hosts),
    }  # fmt: skip
    return {**made, **{name: value for name, value in asked.items() if value}}
