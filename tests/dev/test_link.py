"""The program that links this machine to a container: it ends when it is asked to, however early that is."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from composeplat.dev.link import Link, Place, Session
from composeplat.engine.pulumi_process import Interrupted
from tests.cluster.objects import until


@pytest.fixture
def link(tmp_path: Path) -> Link:
    """A link whose program would continue for a minute."""
    program = tmp_path / "link"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    place = Place(namespace="team", selector="a=b", container="web", state=tmp_path, kubeconfig="")
    return Link(program, place, (), Session())


def test_asked_to_end_before_it_began(link: Link) -> None:
    """A SIGTERM that came just before the program was started was lost."""
    link.end()

    assert link.run(os.environ, print) == 128 + 15


def test_interrupted_before_it_began(link: Link) -> None:
    """So was a Ctrl-C: it is the program's in the container, and there was none."""
    link.interrupt()

    with pytest.raises(Interrupted):
        link.run(os.environ, print)


def test_interrupted_while_it_runs(link: Link, tmp_path: Path) -> None:
    """The program gets a Ctrl-C that only this process got, as from an editor: it was ignored."""
    link.program.write_text(f"#!/bin/sh\ncd {tmp_path}\ntrap 'kill $!; exit 5' INT\ntouch begun\nsleep 60 & wait\n")

    def interrupt() -> None:
        until((tmp_path / "begun").exists)
        link.interrupt()

    threading.Thread(target=interrupt).start()
    assert link.run(os.environ, print) == 5
