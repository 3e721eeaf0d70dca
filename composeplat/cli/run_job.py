"""``platform run`` of a service with a schedule: a run now, with its log and its exit status."""

from __future__ import annotations

import contextlib

from composeplat import progress
from composeplat.cli.console import write_output
from composeplat.cli.interrupts import ended_by_signals
from composeplat.cluster.snapshot import Object
from composeplat.dev.run_job import RunJob
from composeplat.diagnostics import Exit
from composeplat.system.deadline import Deadline


def run_job(job: RunJob, cron_job: Object, *, detached: bool, timeout: float) -> int:
    name = job.create(cron_job)
    if detached:
        write_output(f"{name}\n")
        progress.conclude(f"its log: platform logs --follow {job.service.name}")
        return int(Exit.DONE)
    with ended_by_signals():
        with job.deleted_unless_ended(name):
            pod = job.wait_until_started(name, Deadline(timeout))
            with contextlib.closing(job.lines(pod)) as lines:
                for line in lines:
                    # Where nobody reads, the run continues, and its status counts.
                    write_output(f"{line}\n")
        return job.exit_status(name, pod)
