"""Names that Kubernetes will see: cleaned, shortened and joined, with what is promised of them."""

from __future__ import annotations

import pytest

from composeplat.names import (
    clean,
    endpoint_host,
    is_dns_label,
    is_dns_name,
    is_env_name,
    is_key,
    is_label_value,
    is_service_name,
    make_file_key,
    make_label,
    shorten,
    slug,
)

LONG = "a" * 80


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("web", "web", id="already-clean"),
        pytest.param("Web_App.v 2", "web-app-v-2", id="what-compose-allows"),
        pytest.param("_web_", "web", id="edges"),
        pytest.param("wéb", "wéb", id="foreign-letters-stay-to-be-refused"),
    ],
)
def test_clean(name: str, expected: str) -> None:
    """What Compose allows in a name becomes a dash; anything else is left for the caller to judge."""
    assert expected == clean(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("My App!", "my-app", id="cleaned"),
        pytest.param("a--b", "a-b", id="one-dash"),
        pytest.param("!!!", "", id="nothing-left"),
        pytest.param("éé1", "1", id="foreign"),
    ],
)
def test_make_label(name: str, expected: str) -> None:
    """Any text becomes a DNS label, or nothing."""
    assert expected == make_label(name)


def test_shortening_keeps_short_names() -> None:
    """A label that fits is not touched."""
    assert shorten("a" * 63) == "a" * 63


def test_shortening_keeps_two_long_names_apart() -> None:
    """The hash of the whole is for what was cut."""
    assert shorten(LONG) == "a" * 54 + "-0f45e858"
    assert shorten(LONG) != shorten(LONG + "a")


def test_shortening_does_not_double_the_dash() -> None:
    """A dash where the cut falls goes."""
    assert shorten("a" * 53 + "-" * 30) == "a" * 53 + "-" + shorten("a" * 53 + "-" * 30)[-8:]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/var/lib/data", "var-lib-data", id="plain"),
        pytest.param("/Data", "data-d33637c1", id="case-is-lost"),
        pytest.param("/a_b", "a-b-328ff01f", id="a-character-is-lost"),
    ],
)
def test_slug(path: str, expected: str) -> None:
    """A path becomes a label, with a hash where characters were lost."""
    assert expected == slug(path)


def test_slugs_of_two_paths_are_two() -> None:
    """Paths that read alike keep apart."""
    assert len({slug(path) for path in ("/a/b", "/a_b", "/a.b", "/A/b")}) == 4


def test_slug_within_its_limit() -> None:
    """A long path is cut."""
    assert len(slug("/" + LONG, limit=50)) == 50


@pytest.mark.parametrize(
    ("name", "label", "service"),
    [
        ("web", True, True),
        ("1web", True, False),
        ("-web", False, False),
        ("web-", False, False),
        ("Web", False, False),
        ("a" * 63, True, True),
        ("a" * 64, False, False),
        ("", False, False),
        ("web\n", False, False),
        ("wéb", False, False),
    ],
)
def test_labels(name: str, label: bool, service: bool) -> None:  # noqa: FBT001 -- the expected values
    """A cluster service's name is a DNS label that begins with a letter."""
    assert (label, service) == (is_dns_label(name), is_service_name(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("example.com", True),
        ("a", True),
        ("-a.com", False),
        ("a..com", False),
        ("A.com", False),
        (f"{'a' * 64}.com", False),
        (".".join(["a" * 60] * 5), False),
        ("", False),
    ],
)
def test_dns_name(name: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A DNS name is labels of at most 63 characters, 253 in all."""
    assert expected is is_dns_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", True), ("a_b.c-D", True), ("-a", False), ("a ", False), ("a" * 63, True), ("a" * 64, False)],
)
def test_label_value(text: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A label's value is short, or empty."""
    assert expected is is_label_value(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("team", True),
        ("example.com/team", True),
        ("Example.com/team", True),
        ("example.com/a/b", False),
        ("/team", False),
        ("example.com/", False),
        ("a b", False),
        ("", False),
    ],
)
def test_key(text: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A key is a name, after an optional DNS name and a slash."""
    assert expected is is_key(text)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A_1", True),
        ("a.b-c", True),
        (".a", True),
        ("1A", False),
        ("", False),
        ("A B", False),
        (".", False),
        ("..", False),
        ("..a", False),
    ],
)
def test_env_name(name: str, expected: bool) -> None:  # noqa: FBT001 -- the expected value
    """A variable's name does not begin with a digit, and is none of a folder."""
    assert expected is is_env_name(name)


def test_host() -> None:
    """A host is the endpoint and the namespace, under the domain."""
    assert endpoint_host("web", "team", "example.com") == ("web-team.example.com", False)


def test_long_host() -> None:
    """A host's first label is shortened to what DNS takes, and that is reported."""
    host, shortened = endpoint_host(LONG, "team", "example.com")

    assert shortened
    assert len(host.partition(".")[0]) == 63


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("etc_app.conf", "etc_app.conf", id="plain"),
        pytest.param("my file", "my_file.9e189ad1", id="a-character-is-lost"),
        pytest.param("..", ".5ec1f7e7", id="a-name-that-folders-take"),
    ],
)
def test_config_key(path: str, expected: str) -> None:
    """A Secret's key reads like the path, with a hash where characters were lost."""
    assert expected == make_file_key(path)
