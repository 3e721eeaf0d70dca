"""The Job of a run that a person starts, from the template of a CronJob."""

from __future__ import annotations

from typing import Any

from composeplat.dev.run_job import make_run
from composeplat.dev.run_pod import RunOptions

CRON_JOB: dict[str, Any] = {
    "metadata": {"name": "backup", "namespace": "team", "uid": "u"},
    "spec": {
        "jobTemplate": {
            "metadata": {"labels": {"dev.platform.com/environment": "shop", "dev.platform.com/service": "backup"}},
            "spec": {
                "backoffLimit": 6,
                "completions": 2,
                "parallelism": 2,
                "template": {
                    "metadata": {
                        "labels": {"dev.platform.com/environment": "shop", "dev.platform.com/service": "backup"},
                        "annotations": {"note": "kept"},
                    },
                    "spec": {
                        "containers": [{"name": "backup"}],
                        "hostAliases": [{"ip": "127.0.0.1", "hostnames": ["backup"]}],
                    },
                },
            },
        }
    },
}


def test_one_try_of_one_pod_beside_the_service() -> None:
    """The CronJob owns the run, and no Service selects its pod; the CronJob itself is not changed."""
    made = make_run(CRON_JOB, "backup-run-1")

    head, spec = made["metadata"], made["spec"]
    assert head["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "u", "controller": True}
    ]
    assert head["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual"}
    assert set(spec) == {"backoffLimit", "template"}
    assert spec["backoffLimit"] == 0
    assert spec["template"]["metadata"] == {
        "labels": {"dev.platform.com/environment": "shop", "dev.platform.com/run": "backup"},
        "annotations": {"note": "kept", "dev.platform.com/keep": "true"},
    }
    assert spec["template"]["spec"] == {"containers": [{"name": "backup"}]}
    assert "hostAliases" in CRON_JOB["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def test_only_a_run_without_settings_is_one_of_the_schedule() -> None:
    """With a command or another setting it is a one-off pod."""
    assert RunOptions().is_as_scheduled
    assert RunOptions(detached=True, kept=True).is_as_scheduled
    assert not RunOptions(command=("sh",)).is_as_scheduled
    assert not RunOptions(environment={"A": "1"}).is_as_scheduled
