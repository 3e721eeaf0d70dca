"""Bytes that are no Compose file: each is refused by one line that names the place, or read where it is harmless."""

from __future__ import annotations

import pytest
from yaml.reader import Reader

from composeplat.compose import yaml_reader
from tests.conftest import Project

TEXT = "services:\n  web:\n    image: nginx\n"

REFUSED = {
    "a NUL byte": (
        b"services:\n  web: {image: ngi\0nx}\n",
        "compose.yaml:2:19: error: a control character (U+0000) is not allowed in the file [invalid-character]",
    ),
    "an escape": (
        b"# \x1b[31mred\n",
        "compose.yaml:1:3: error: a control character (U+001B) is not allowed in the file [invalid-character]",
    ),
    "a bell after other letters": (
        "services: {wéb: {image: a\a}}".encode(),
        "compose.yaml:1:26: error: a control character (U+0007) is not allowed in the file [invalid-character]",
    ),
    "a delete": (
        b"a: \x7f",
        "compose.yaml:1:4: error: a control character (U+007F) is not allowed in the file [invalid-character]",
    ),
    "a control character of the upper half": (
        "a: \x9b31m".encode(),
        "compose.yaml:1:4: error: a control character (U+009B) is not allowed in the file [invalid-character]",
    ),
    "a byte that is not UTF-8": (
        b"services:\n  web: {image: \xffnginx}\n",
        "compose.yaml:2:16: error: a byte here is not UTF-8 text [invalid-utf8]",
    ),
    "a letter that is cut off": (
        "services:\n  web: {image: é".encode()[:-1],
        "compose.yaml:2:16: error: a byte here is not UTF-8 text [invalid-utf8]",
    ),
    "Latin-1": (
        "a: 1\nb: café\n".encode("latin-1"),
        "compose.yaml:2:7: error: a byte here is not UTF-8 text [invalid-utf8]",
    ),
    "a byte that is not UTF-8, after letters that are": (
        "a: ééé".encode() + b"\xff",
        "compose.yaml:1:7: error: a byte here is not UTF-8 text [invalid-utf8]",
    ),
    "a brace that is never closed": (
        b"services: {",
        "compose.yaml:1:12: error: not YAML: did not find expected node content [invalid-yaml]",
    ),
    "a control character after every end of a line": (
        "a\u2028b\r\nc\rd\x85e: \a".encode(),
        "compose.yaml:5:4: error: a control character (U+0007) is not allowed in the file [invalid-character]",
    ),
    "half of a pair": (
        b"a: \xed\xa0\x80\n",
        "compose.yaml:1:4: error: a byte here is not UTF-8 text [invalid-utf8]",
    ),
    "UTF-16 that is cut off": (
        TEXT.encode("utf-16")[:-1],
        "compose.yaml:1:1: error: the file is UTF-16 text, not UTF-8 [invalid-utf8]",
    ),
    "UTF-16 without a mark": (
        TEXT.encode("utf-16-le"),
        "compose.yaml:1:2: error: a control character (U+0000) is not allowed in the file [invalid-character]",
    ),
    "a tab that indents": (
        b"services:\n\tweb: {image: nginx}\n",
        "compose.yaml:2:1: error: not YAML: the line is indented with a tab [invalid-yaml]",
    ),
    "nothing": (
        b"",
        "compose.yaml:1:1: error: the definition has no services [no-services]",
    ),
    "only comments": (
        b"# one\n\n# two\n",
        "compose.yaml:1:1: error: the definition has no services [no-services]",
    ),
    "only a mark of the order of bytes": (
        b"\xef\xbb\xbf",
        "compose.yaml:1:1: error: the definition has no services [no-services]",
    ),
    "only the start of a document": (
        b"---\n",
        "compose.yaml:1:1: error: the definition has no services [no-services]",
    ),
    "null": (b"null", "compose.yaml:1:1: error: the definition has no services [no-services]"),
    "one word": (
        b"services",
        "compose.yaml:1:1: error: the definition must be a mapping with a key 'services' [invalid-type]",
    ),
    "a list": (
        b"- services\n",
        "compose.yaml:1:1: error: the definition must be a mapping with a key 'services' [invalid-type]",
    ),
    "a second document that is a list": (
        TEXT.encode() + b"---\n- a\n",
        (
            "compose.yaml:5:1: error: the definition must be a mapping, as in the file it overrides, not a list"
            " [invalid-type]"
        ),
    ),
    "a second equal key": (
        b"services:\n  web:\n    image: nginx\n\n    image: caddy\n",
        "compose.yaml:5:5: error: key 'image' is already set on line 3 [duplicate-key]",
    ),
    "a number as key": (
        b"services:\n  web: {image: nginx}\n  8080: {image: nginx}\n",
        "compose.yaml:3:3: error: a key must be text, not '8080' [non-string-key]",
    ),
    "a boolean as key": (
        b"services: {web: {image: nginx, environment: {True: a}}}",
        "compose.yaml:1:46: error: a key must be text, not 'True' [non-string-key]",
    ),
    "a null as key": (
        b"services: {web: {image: nginx, labels: {~: a}}}",
        "compose.yaml:1:41: error: a key must be text, not '~' [non-string-key]",
    ),
    "a number with a point as key": (
        b"services: {web: {image: nginx, labels: {1.50: a}}}",
        "compose.yaml:1:41: error: a key must be text, not '1.50' [non-string-key]",
    ),
    "a list as key": (
        b"services: {web: {image: nginx}, ? [a] : b}",
        "compose.yaml:1:35: error: a key must be text, not a list [non-string-key]",
    ),
    "a mapping as key": (
        b"services: {web: {image: nginx}}\n? {a: b}\n: c\n",
        "compose.yaml:2:3: error: a key must be text, not a mapping [non-string-key]",
    ),
    "an alias of nothing": (
        b"services: {web: *web}\n",
        "compose.yaml:1:17: error: not YAML: the alias '*web' refers to no anchor above it [invalid-yaml]",
    ),
    "a merge of a list of words": (
        b"services: {web: {image: nginx, <<: [a]}}\n",
        (
            "compose.yaml:1:32: error: the merge key '<<' needs a mapping or a list of mappings, not the text 'a'"
            " [invalid-merge-key]"
        ),
    ),
    "a quote that is never closed": (
        b'services: {web: {image: "nginx}}\n',
        "compose.yaml:1:25: error: not YAML: a quote opened on line 1 is never closed [invalid-yaml]",
    ),
    "a version of YAML that there is not": (
        b"%YAML 9.9\n---\n" + TEXT.encode(),
        "compose.yaml:1:1: error: not YAML: found incompatible YAML document [invalid-yaml]",
    ),
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(content: bytes, message: str, project: Project) -> None:
    """The file is refused, by this line first."""
    messages = project({"compose.yaml": content}).read().messages

    assert message == messages[0]
    assert [message] == messages


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"\xef\xbb\xbf" + TEXT.encode(), id="a mark of the order of bytes"),
        pytest.param(b"\xff\xfe" + TEXT.replace("\n", "\r\n").encode("utf-16-le"), id="UTF-16, as Windows writes it"),
        pytest.param(b"\xfe\xff" + TEXT.encode("utf-16-be"), id="UTF-16 of the other order"),
        pytest.param(TEXT.replace("\n", "\r\n").encode(), id="carriage returns"),
        pytest.param(TEXT.replace("\n", "\r").encode(), id="carriage returns alone"),
        pytest.param(TEXT.rstrip("\n").encode(), id="no newline at the end"),
        pytest.param(b"\n\n" + TEXT.encode() + b"\n\n", id="empty lines around"),
        pytest.param(b"---\n" + TEXT.encode() + b"...\n", id="marks of the document's ends"),
        pytest.param(b"%YAML 1.2\n---\n" + TEXT.encode(), id="a version"),
        pytest.param(b"services:\n---\n" + TEXT.encode(), id="two documents"),
        pytest.param(b"---\n---\n" + TEXT.encode() + b"---\n", id="empty documents around"),
        pytest.param(TEXT.replace("image: nginx", "image:\tnginx\t# a").encode(), id="tabs between words"),
    ],
)
def test_accepted(content: bytes, project: Project) -> None:
    """The file is read as if it were plain."""
    reading = project({"compose.yaml": content}).read()

    assert reading.messages == []
    assert reading.container("Deployment", "web")["image"] == "nginx"


@pytest.mark.parametrize(
    ("compose", "variables", "place"),
    [
        (TEXT + "    environment:\n      A: |\n        1\n      B: ${B:?give it}\n", "A=1\n", "compose.yaml:7:10:"),
        (TEXT, "A=1\n\nwrong line\n", ".env:3:1:"),
    ],
)
def test_places_in_files_of_windows(compose: str, variables: str, place: str, project: Project) -> None:
    """With a mark of the order of bytes and the line ends of Windows, the places of messages are those without."""
    files = {"compose.yaml": compose, ".env": variables}
    (plain,) = project(dict(files)).read().messages
    marked = {name: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode() for name, text in files.items()}

    assert plain.startswith(place)
    assert project(marked).read().messages == [plain]


def test_documents_are_laid_over_one_another(project: Project) -> None:
    """Several documents of a file are as several files: the later one holds."""
    reading = project(TEXT + "---\nservices: {web: {image: caddy}}\n").read()

    assert reading.messages == []
    assert reading.container("Deployment", "web")["image"] == "caddy"


def test_anchors_end_with_their_document(project: Project) -> None:
    """An alias names no anchor of an earlier document."""
    messages = project("x-web: &web {image: nginx}\n---\nservices: {web: *web}\n").read().messages

    assert messages == [
        "compose.yaml:3:17: error: not YAML: the alias '*web' refers to no anchor above it [invalid-yaml]"
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A=b\xff\n", ".env:1:4: error: a byte here is not UTF-8 text [invalid-utf8]"),
        (b"A=b\0\n", ".env:1:4: error: a control character (U+0000) is not allowed in the file [invalid-character]"),
        ("A=b\n".encode("utf-16"), ".env:1:1: error: the file is UTF-16 text, not UTF-8 [invalid-utf8]"),
    ],
)
def test_refused_env_file(content: bytes, message: str, project: Project) -> None:
    """An env file is held to the same."""
    assert [message] == project({"compose.yaml": TEXT, ".env": content}).read().messages


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfA=b\r\n", b"A=b\r", b"\n# a\n\nA=b"])
def test_accepted_env_file(content: bytes, project: Project) -> None:
    """A mark of the order of bytes, and carriage returns, do no harm to an env file."""
    text = "services: {web: {image: nginx, labels: {a: '$A'}}}"
    reading = project({"compose.yaml": text, ".env": content}).read()

    assert reading.messages == []
    assert reading.object("Deployment", "web")["metadata"]["annotations"] == {"a": "b"}


@pytest.mark.parametrize(
    "content", [b"\0", b"\xff\xfe", b"{", b"\x1b]0;a\x07", b"- " * 50, b"!!python/object:os.system {}"]
)
def test_junk_on_standard_input(content: bytes, project: Project) -> None:
    """Junk on standard input is refused with a place in it."""
    outcome = project({}).run("render", "-f", "-", stdin=content).assert_invalid()

    assert outcome.stderr.startswith("<stdin>:1:")
    assert "\x1b" not in outcome.stderr


def test_forbidden_characters() -> None:
    """The reader refuses exactly the characters that the YAML library calls not printable."""
    characters = [chr(number) for number in range(0x110000)]
    expected = [character for character in characters if Reader.NON_PRINTABLE.match(character)]

    assert [found for found in characters if yaml_reader.FORBIDDEN.match(found)] == expected
