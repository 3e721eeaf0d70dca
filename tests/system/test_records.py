"""Records: they compare, hash and print as frozen dataclasses do, and take less time to make."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from composeplat.system.records import mutable, record
from tests.conftest import Folder, Project


@record
class Port:
    number: int
    name: str = ""


@record(kw_only=True)
class Service:
    name: str
    ports: tuple[Port, ...] = ()
    value: str = field(default="", repr=False)
    line: int = field(default=0, compare=False)


@record
class Web(Service):
    host: str = ""


@record
class Nothing:
    """A record without a field."""


@dataclass(frozen=True, slots=True)
class Example:
    number: int
    name: str = ""


def test_equal_records() -> None:
    """Records are equal if they are of the same class and all compared fields are equal; equal ones have one hash."""
    web = Service(name="web", ports=(Port(80),), line=1)
    same = Service(name="web", ports=(Port(80),), line=2)
    other = Service(name="web", ports=(Port(81),), line=1)

    name: object = "web"
    assert (web == same, web == other, web == name) == (True, False, False)
    assert len({web, same, other}) == 2
    assert Web(name="web") != Service(name="web")
    assert (Nothing() == Nothing(), len({Nothing(), Nothing()})) == (True, 1)


def test_unhashable_value() -> None:
    """A record with a value that has no hash has none either, as a frozen dataclass."""
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(Port([]))  # type: ignore[arg-type]


def test_printed_record() -> None:
    """A record prints as a dataclass does: its class and its fields, without those that are not to be printed."""
    assert repr(Port(80)) == repr(Example(80)).replace("Example", "Port")
    assert repr(Service(name="web", value="hidden")) == "Service(name='web', ports=(), line=0)"
    assert repr(Nothing()) == "Nothing()"


def test_own_methods() -> None:
    """A method that the class has itself stays."""

    @record
    class Named:
        name: str

        def __repr__(self) -> str:
            return f"<{self.name}>"

    assert repr(Named("web")) == "<web>"


def test_new_defaults() -> None:
    """Each object gets a new value of a default factory, also one of a class that is no record itself."""

    @record
    class Names:
        found: list[str] = field(default_factory=list)

    class Ports(Names):
        pass

    Names().found.append("web")
    Ports().found.append("80")
    assert (Names().found, Ports().found, Names(["web"]).found) == ([], [], ["web"])


def test_missing_value() -> None:
    """A missing value and an unknown one are errors with the name of the class, for the first object and later ones."""

    @record
    class Route:
        host: str

    make: Any = Route
    for _ in range(2):
        with pytest.raises(TypeError, match=r"Route\.__init__\(\) missing 1 required positional argument: 'host'"):
            make()
        with pytest.raises(TypeError, match=r"Route\.__init__\(\) got an unexpected keyword argument 'path'"):
            make("example.com", path="/")


def test_dataclass_functions() -> None:
    """A record is a dataclass: it is copied with changes, lists its fields and matches by position."""
    match replace(Port(80), name="http"):
        case Port(number, name):
            assert (number, name) == (80, "http")
    assert [entry.name for entry in fields(Web)] == ["name", "ports", "value", "line", "host"]
    with pytest.raises(AttributeError):
        Port(80).other = 1  # type: ignore[attr-defined]


def test_mutable() -> None:
    """A mutable object changes, equals itself only, and has no other attributes than its fields."""

    @mutable
    class Count:
        number: int = 0

    count = Count()
    count.number += 1
    assert (count.number, count == Count(1), len({count, Count(1)})) == (1, False, 2)
    with pytest.raises(AttributeError):
        count.other = 1  # type: ignore[attr-defined]


def test_types(project: Project) -> None:
    """Mypy refuses to change a field, a missing value and a value of another type."""
    text = """
from composeplat.system.records import mutable, record

@record
class Port:
    number: int

port = Port(80)
port.number = 81
Port()
Port("80")
"""
    folder: Folder = project({"ports.py": text})
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "--no-error-summary", "ports.py"]
    done = subprocess.run(command, cwd=folder.path, capture_output=True, text=True, check=False)

    found = [line.rpartition("  [")[2] for line in done.stdout.splitlines()]
    assert found == ["misc]", "call-arg]", "arg-type]"], done.stdout


def test_time_to_make_a_class() -> None:
    """A record takes at most 0.7 of the time of a frozen dataclass to make; it is about 0.3."""

    def seconds(decorate: Any) -> float:
        start = time.process_time()
        for _ in range(50):
            decorate(type("Made", (), {"__annotations__": dict.fromkeys("abcdefg", int), "__module__": __name__}))
        return time.process_time() - start

    ratios = [seconds(record) / seconds(dataclass(frozen=True, slots=True)) for _ in range(5)]

    assert min(ratios) <= 0.7
