"""Run a command in the container of a service, or of its dev workload during development.

Owns the choice of the pod.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from composeplat.cluster.snapshot import Object, container_statuses, is_ready, services_of
from composeplat.cluster.unreachable_nodes import unreachable_node
from composeplat.engine.dev_workloads import is_dev_workload
from composeplat.engine.target import Target
from composeplat.system.atomic import write_private
from composeplat.system.records import record
from composeplat.system.signals import handle_signals, pass_on_interrupt
from composeplat.system.threads import start_thread
from composeplat.toolchain.setup import Found, Toolchain
from composeplat.toolchain.tools import LINK

#: How a shell, and the link, end where a program is missing or can't be executed.
NO_PROGRAM = (126, 127)
#: Before a command that is sent input: Kubernetes does not report its end while some of that is unread, as where
#: busybox's tar fails. It needs a shell.
READING_ALL = ("sh", "-c", '"$@"; status=$?; cat >/dev/null; exit $status', "sh")
#: How a message of the link begins, in place of one of a program in the container.
LINK_ERROR = "error: "
_CHUNK_BYTES = 1024 * 1024
_INTERRUPTED = 130
_END_TIMEOUT_S = 2.0
_MAX_ERROR_BYTES = 64 * 1024


@record(kw_only=True)
class Command:
    namespace: str
    pod: str
    container: str
    args: tuple[str, ...]
    terminal: bool

    def running(self, args: tuple[str, ...]) -> Command:
        """Another command in the same container, without a terminal."""
        return replace(self, args=args, terminal=False)


def choose_pod(pods: Iterable[Object], service: str) -> str:
    """Choose the pod of a service to run a command in, empty without one: a ready pod first, then the newest.

    Its container runs: in one that crashes again and again, no command can be started.
    """
    running = [pod for pod in pods if service in services_of(pod) and running_container(pod, service)]
    found = max(
        running,
        key=lambda pod: (
            is_ready(pod),
            not unreachable_node(pod),
            is_dev_workload(pod),
            pod["metadata"]["creationTimestamp"],
        ),
        default=None,
    )
    return str(found["metadata"]["name"]) if found else ""


def running_container(pod: Object, container: str) -> Object | None:
    """Return the status of a container that runs, in a pod that runs and does not end."""
    if pod.get("status", {}).get("phase") != "Running" or "deletionTimestamp" in pod["metadata"]:
        return None
    named = (status for status in container_statuses(pod) if status["name"] == container)
    return next((status for status in named if "running" in status.get("state", {})), None)


def _find_link(environment: Mapping[str, str]) -> Found:
    """Find the program that connects, or download or build it: Ctrl-C ends that, as no command runs yet."""
    toolchain = Toolchain(environment)
    if threading.current_thread() is not threading.main_thread():
        return toolchain.need(LINK)
    with handle_signals({signal.SIGINT: signal.default_int_handler}):
        return toolchain.need(LINK)


@contextlib.contextmanager
def _started(
    command: Command, target: Target, environment: Mapping[str, str], **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    link = _find_link(environment)
    with tempfile.TemporaryDirectory(prefix="composeplat-") as folder:
        config = Path(folder) / "exec.json"
        write_private(
            config,
            json.dumps(
                {
                    "namespace": command.namespace,
                    "pod": command.pod,
                    "container": command.container,
                    "command": list(command.args),
                    "terminal": command.terminal,
                }
            ),
        )
        process = subprocess.Popen(
            [str(link.path), "exec", "--config", str(config)],
            env={**environment, "KUBECONFIG": target.kubeconfig_for(Path(folder))},
            **streams,
        )
        try:
            yield process
        finally:
            # It may have the terminal, which it restores.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_END_TIMEOUT_S)
            process.kill()
            process.wait()


@record
class Piped:
    """A command whose streams are pipes of this process."""

    process: subprocess.Popen[bytes]
    input: IO[bytes]
    output: IO[bytes]
    errors: IO[bytes]

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the status and the standard error."""
        with contextlib.suppress(BrokenPipeError):
            self.input.close()
        with self.output:
            while self.output.read(_CHUNK_BYTES):
                pass
        status = self.process.wait()
        self.errors.seek(0)
        return status, self.errors.read(_MAX_ERROR_BYTES).decode("utf-8", "replace").strip()


@contextlib.contextmanager
def open_command(command: Command, target: Target, environment: Mapping[str, str]) -> Iterator[Piped]:
    """Run it with pipes; it is killed if the block ends before."""
    with (
        # A pipe that nobody reads would stop the command.
        tempfile.TemporaryFile() as errors,
        _started(command, target, environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        if process.stdin and process.stdout:
            yield Piped(process, process.stdin, process.stdout, errors)


def run_interruptible(
    command: Command, target: Target, environment: Mapping[str, str], interrupt: Callable[[], None]
) -> int:
    """Run a command without a terminal, which gets a Ctrl-C by ``interrupt``; a second one ends the link to it."""
    # The program of the link ignores it too: it must last until the command has ended.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    presses = 0
    try:
        with _started(command, target, environment) as process:

            def press(*_: object) -> None:
                nonlocal presses
                presses += 1
                if presses == 1:
                    start_thread("interrupt", interrupt, lambda _: process.kill())
                else:
                    process.kill()

            signal.signal(signal.SIGINT, press)
            status = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return _INTERRUPTED if status < 0 and presses else _shell_status(status)


def _shell_status(status: int) -> int:
    return 128 - status if status < 0 else status


def run_command(command: Command, target: Target, environment: Mapping[str, str]) -> int:
    """Run a command with the streams of this process, and return its status."""
    with _started(command, target, environment) as process:
        status = process.wait()
    return _shell_status(status)


def run_until_interrupted(command: Command, target: Target, environment: Mapping[str, str]) -> int:
    """Do the same, and leave a Ctrl-C to the command: on a terminal it is typed there, else it ends the link."""
    with (
        handle_signals({signal.SIGINT: lambda *_: None}),
        _started(command, target, environment) as process,
        handle_signals({signal.SIGINT: lambda *_: pass_on_interrupt(process)}),
    ):
        status = process.wait()
    return _shell_status(status)
