"""Which definitions keep services apart."""

from __future__ import annotations

import time

import pytest

from tests.conftest import Project


@pytest.mark.parametrize(
    ("networks", "expected"),
    [
        pytest.param("[[a], [a, b], [a, c]]", False, id="one network for all"),
        pytest.param("[[a], [b]]", True, id="two apart"),
        pytest.param("[[a, b], [b, c], [a, c]]", False, id="each two share one"),
        pytest.param("[[a, b], [b, c], [c, d]]", True, id="the ends of a chain"),
    ],
)
def test_isolation(project: Project, networks: str, *, expected: bool) -> None:
    """Policies are made only if two services share no network."""
    groups = [group.split(", ") for group in networks[2:-2].split("], [")]
    services = "".join(f"  s{number}: {{image: x, networks: {group}}}\n" for number, group in enumerate(groups))
    names = sorted({name for group in groups for name in group})
    reading = project(f"services:\n{services}networks: {{{', '.join(f'{name}: ' for name in names)}}}\n").read(
        full=True
    )

    assert any(name.startswith("NetworkPolicy/") for name in reading.names) is expected


def test_many_groups_are_quick(project: Project) -> None:
    """Thousands of services with networks of their own, and one that all share, are compared at once."""
    services = "".join(f"  s{number}: {{image: x, networks: [all, n{number}]}}\n" for number in range(2000))
    networks = "".join(f"  n{number}:\n" for number in range(2000))
    began = time.process_time()
    reading = project(f"services:\n{services}networks:\n  all:\n{networks}").read(full=True)

    assert not any(name.startswith("NetworkPolicy/") for name in reading.names)
    assert time.process_time() - began < 20
