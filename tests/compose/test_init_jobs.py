"""Hooks that run once for several replicas, as jobs of the model."""

from __future__ import annotations

from tests.conftest import Project

KEYS = "scale: 2, pre_start: [{command: a}, {image: y, command: b}]"


def test_a_build_is_one(project: Project) -> None:
    """The job of a hook has the image of its service, whose build is planned and checked once."""
    text = f"services: {{web: {{build: ../outside, {KEYS}}}}}"

    read = project(text).read(full=True)

    assert [found.path for found in read.loaded.report.sorted()] == [("services", "web", "build")]
    images = {service.name: str(service.container.image_of) for service in read.loaded.project.services.values()}
    assert images == {"web-pre-start-0": "web", "web-pre-start-1": "", "web": ""}


def test_a_pod_of_several_services(project: Project) -> None:
    """The pod waits for the jobs of each service in it, and a job for what the pod depends on."""
    web = f"web: {{image: x, {KEYS}, depends_on: [db]}}"
    side = "side: {image: z, network_mode: 'service:web', pre_start: [{command: c}]}"

    read = project(f"services: {{{web}, {side}, db: {{image: postgres}}}}").read(full=True)

    assert read.messages == []
    needed = {s.name: [d.service for d in s.depends_on] for s in read.loaded.project.services.values()}
    assert needed == {
        "web-pre-start-0": ["db"],
        "web-pre-start-1": ["db", "web-pre-start-0"],
        "web": ["db", "web-pre-start-1", "side-pre-start-0"],
        "side-pre-start-0": ["db"],
        "side": [],
        "db": [],
    }
