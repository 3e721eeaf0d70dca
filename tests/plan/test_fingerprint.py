"""What rolls pods when variables or files change does not show what they are."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time

import pytest

from composeplat.plan.fingerprint import HASH_ANNOTATION, Fingerprint, hash_ahead
from composeplat.plan.resource_keys import ResourceKey, ResourceKind
from tests.conftest import VARIABLES, Project

WEAK = "services: {web: {image: x, environment: {PIN: '1234'}}}"


def found_in(project: Project, text: str = WEAK, **more: str) -> Fingerprint:
    template = project(text).read(**more).object("Deployment", "web")["spec"]["template"]
    found: Fingerprint = template["metadata"]["annotations"][HASH_ANNOTATION]
    return found


def test_a_weak_value_can_t_be_tried(project: Project) -> None:
    """What is on the pods hangs on a salt that they don't have.

    It was the plain hash of the environment: anyone who might read pods found a PIN by trying all.
    """
    found = found_in(project)

    assert found.keyed("one") == found.keyed("one")
    assert found.keyed("one") != found.keyed("another")
    guessed = {hashlib.sha256(text.encode()).hexdigest()[:32] for text in (found.digest, "PIN=1234\0", "PIN=1234")}
    assert guessed.isdisjoint({found.keyed(""), found.keyed("one"), str(found)})


def test_without_a_salt_the_same_comes_of_the_same(project: Project) -> None:
    """`render` has no salt: what it prints is the same each time, slow to guess, and not what is deployed."""
    first, second = str(found_in(project)), str(found_in(project))

    assert first == second
    assert first != found_in(project).keyed("")
    assert len(first) == 32


def test_equal_values_don_t_look_equal(project: Project) -> None:
    """Nobody sees that two environments have the same password."""
    assert str(found_in(project, namespace="dev")) != str(found_in(project, namespace="prod"))


def test_it_does_not_reveal_its_inputs(project: Project) -> None:
    """A plan that is printed for debugging has no digest in it."""
    found = found_in(project)

    assert found.digest not in repr(found)


def test_hashes_are_computed_by_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They compute each one once, the last first; afterwards nothing is computed again."""
    secret = ResourceKey(ResourceKind.ENVIRONMENT, "web")
    found = [Fingerprint(secret, f"of this test {number:016}") for number in range(40)]
    computed: list[bytes] = []
    threads = set()

    def scrypt(digest: bytes, **_options: object) -> bytes:
        computed.append(digest)
        threads.add(threading.get_ident())
        time.sleep(0.002)
        return digest[-16:]

    monkeypatch.setattr(hashlib, "scrypt", scrypt)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    others = set(threading.enumerate())
    hash_ahead([*found, *found])
    for helper in set(threading.enumerate()) - others:
        helper.join()
    texts = [str(each) for each in found]

    assert found[-1].digest.encode() in computed[:3]
    assert sorted(computed) == sorted(each.digest.encode() for each in found)
    assert len(threads) == 3
    assert threading.get_ident() not in threads
    assert texts == [each.digest[-16:].encode().hex() for each in found]


def test_who_needs_a_hash_does_not_wait_for_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """They stand still here, from their first hash on."""
    secret = ResourceKey(ResourceKind.ENVIRONMENT, "web")
    found = [Fingerprint(secret, f"of a second test {number:016}") for number in range(4)]
    me, go_on = threading.get_ident(), threading.Event()

    def scrypt(digest: bytes, **_options: object) -> bytes:
        if threading.get_ident() != me:
            go_on.wait(10)
        return digest[-16:]

    monkeypatch.setattr(hashlib, "scrypt", scrypt)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    hash_ahead(found)
    texts = [str(each) for each in found]
    are_held_up = not go_on.is_set()
    go_on.set()

    assert texts == [each.digest[-16:].encode().hex() for each in found]
    assert are_held_up


def test_the_end_of_the_process() -> None:
    """It waits for the hash that a thread is at, as OpenSSL frees what that uses, and for no other."""
    code = (
        "import hashlib, os, time\n"
        "from composeplat.plan.fingerprint import Fingerprint, hash_ahead\n"
        "from composeplat.plan.resource_keys import ResourceKey, ResourceKind\n"
        "def scrypt(digest, **_):\n"
        "    print('begun', flush=True); time.sleep(0.3); print('ended', flush=True)\n"
        "    return digest\n"
        "hashlib.scrypt, os.cpu_count = scrypt, lambda: 2\n"
        "secret = ResourceKey(ResourceKind.ENVIRONMENT, 'web')\n"
        "hash_ahead(Fingerprint(secret, str(number)) for number in range(9))\n"
        "time.sleep(0.1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=VARIABLES, capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["begun", "ended"]
