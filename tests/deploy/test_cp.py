"""`platform cp`: files into and out of a container, and `platform images` and `port` of what runs there."""

from __future__ import annotations

import subprocess

from tests.deploy.conftest import SLEEP, Environment

FILE = f"""\
services:
  web: {{image: 'busybox:1.37', command: "{SLEEP}", stop_grace_period: 0, expose: [7000]}}
"""


def test_copies_both_ways(environment: Environment) -> None:
    """Bytes come back as they were, folders with their modes; a container's links are left out, and said."""
    environment.deploy(FILE).expect()
    made = environment.folder / "made"
    (made / "sub").mkdir(parents=True)
    content = bytes(range(256)) * 5000
    (made / "sub" / "data").write_bytes(content)
    (made / "run").write_text("x")
    (made / "run").chmod(0o755)
    sent = environment.platform("cp", "made", "web:/srv").expect()
    assert sent.stderr == "copied 2 files, 1.2 MiB\n"
    (pod,) = environment.pods("web")
    environment.exec(pod["metadata"]["name"], "sh", "-c", "cd /srv; ln -s /etc out; ls -l run | cut -c1-10")
    got = environment.platform("cp", "web:/srv", "back").expect()
    assert (environment.folder / "back" / "sub" / "data").read_bytes() == content
    assert (environment.folder / "back" / "run").stat().st_mode & 0o777 == 0o755
    assert got.stderr == ("left out, as links and devices are not copied: ./srv/out\ncopied 2 files, 1.2 MiB\n")
    environment.platform("cp", "made/run", "web:/srv/as").expect()
    assert environment.exec(pod["metadata"]["name"], "cat", "/srv/as") == "x"

    environment.platform("cp", "made", "web:/srv").expect()
    assert environment.exec(pod["metadata"]["name"], "cat", "/srv/made/run") == "x"
    no_folder = environment.platform("cp", "made/run", "web:/none/")
    assert no_folder.stderr == "error: there is no folder '/none/' in the container\n"
    missing = environment.platform("cp", "web:/no/such", ".")
    assert (missing.status, "such" in missing.stderr) == (1, True)
    piped = subprocess.run(
        environment.command_line("cp", "web:/srv/run", "-"), cwd=environment.folder, env=environment.variables,
        capture_output=True, check=True,
    )  # fmt: skip
    assert b"run" in piped.stdout[:10]
    environment.exec(pod["metadata"]["name"], "rm", "/bin/tar")
    without = environment.platform("cp", "web:/srv", "x")
    assert "has no program 'tar'" in without.stderr

    (image,) = environment.platform("images", "--json").expect().json["images"]
    assert (image["image"], image["digest"][:7], image["source"]) == ("busybox:1.37", "sha256:", "pulled")
    assert environment.platform("port", "web", "7000").expect().stdout == f"web.{environment.namespace}:7000\n"


def test_a_copy_that_the_container_does_not_take(environment: Environment) -> None:
    """A tar as busybox's ends before it has read all: its message is shown, where the end was awaited for ever.

    An image may have no shell.
    """
    text = FILE.replace("expose", "tmpfs: ['/small:size=64k'], expose")
    environment.deploy(f"x-platform: {{full: true}}\n{text}", "--domain", "localhost").expect()
    (environment.folder / "large").write_bytes(bytes(8_000_000))
    for args, sent in ((("large", "web:/small/"), b""), (("-", "web:/small"), b"no archive" * 1_000_000)):
        failed = subprocess.run(
            environment.command_line("cp", *args), cwd=environment.folder, env=environment.variables, timeout=60,
            capture_output=True, check=False, input=sent,
        )  # fmt: skip
        assert (failed.returncode, b"tar: " in failed.stderr) == (1, True), failed.stderr

    (pod,) = environment.pods("web")
    environment.exec(pod["metadata"]["name"], "rm", "/bin/sh")
    environment.write("x", "one")
    environment.platform("cp", "one", "web:/one").expect()
    assert environment.exec(pod["metadata"]["name"], "cat", "/one") == "x"
