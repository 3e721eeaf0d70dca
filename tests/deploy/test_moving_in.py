"""A project of Docker Compose, moved to a cluster by ``platform check``, ``init`` and ``deploy``."""

from __future__ import annotations

from tests.deploy.conftest import SLEEP, Environment

TEXT = """\
services:
  store:
    image: busybox:1.37
    command: {sleep}
    user: "1000:1000"
    volumes: ["./store:/srv/store", "/var/run/docker.sock:/var/run/docker.sock"]
"""


def test_data_is_kept(environment: Environment) -> None:
    """A project that can't be deployed as it is can be after `init`, and keeps its data when its pod is replaced."""
    environment.write(TEXT.format(sleep=SLEEP))
    environment.platform("deploy").expect(3)
    before = environment.platform("check", "--json").expect(3).json
    environment.platform("init", "--yes", "--offline").expect(0)
    after = environment.platform("check", "--json").expect(0).json

    environment.platform("deploy").expect(0)
    environment.exec("store-0", "sh", "-c", "echo kept > /srv/store/file")
    with environment.api() as api:
        api.delete(f"/api/v1/namespaces/{environment.namespace}/pods/store-0")
    environment.write(TEXT.format(sleep=SLEEP).replace("1000:1000", "1000:1001"))
    environment.platform("deploy").expect(0)

    assert environment.exec("store-0", "cat", "/srv/store/file") == "kept\n"
    assert (before["verdict"], after["verdict"]) == ("cannot-run", "as-written")
    assert [note for note in after["notes"] if "could not" in note] == []
    assert after["services"][0]["kind"] == "StatefulSet"
