"""Records: dataclasses that never change, whose classes are quick to make; and such dataclasses that do change.

Owns how records are compared, hashed and printed. Must not know any record.
A frozen dataclass compiles six methods for each class. A command imports over a hundred of these classes, and that was
a third of the time of a short run. A record compiles ``__init__`` only, with the first object of its class: a short run
makes objects of half of them. The other methods are the same for all.
A mutable dataclass compiles no more than that either.

mypy refuses an assignment to a field; nothing refuses it at run time. Everything else is as in a dataclass with
``frozen`` and ``slots``, such as :func:`dataclasses.replace` and :func:`dataclasses.fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_T = TypeVar("_T")


@overload
def record(cls: type[_T], /) -> type[_T]: ...
@overload
def record(*, kw_only: bool = False) -> Callable[[type[_T]], type[_T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """Make a class a record: its annotations are its fields."""
    return _make_record(cls, kw_only=False) if cls else lambda found: _make_record(found, kw_only=kw_only)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def mutable(cls: type[_T]) -> type[_T]:
    """Make a class a dataclass with ``slots`` whose objects change: each equals itself only."""
    made: type[_T] = _make(cls, kw_only=False)
    return made


def _make_record(cls: type[Any], *, kw_only: bool) -> type[Any]:
    own = set(vars(cls))
    made = _make(cls, kw_only=kw_only)
    compared = [entry.name for entry in fields(made) if entry.compare]
    made.compared_values = staticmethod(attrgetter(*compared) if compared else _no_values)
    for name, method in _METHODS.items():
        if name not in own:
            setattr(made, name, method)
    found: type[Any] = made
    return found


def _make(cls: type[Any], *, kw_only: bool) -> Any:
    # Without a docstring, a dataclass writes one with its signature, which takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made: Any = dataclass(init=False, slots=True, eq=False, repr=False, kw_only=kw_only)(cls)
    made.__init__ = _init_at_first_use(made)
    return made


def _init_at_first_use(cls: Any) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = _compile_init(cls)
        cls.__init__(self, *args, **kwargs)

    return init


def _compile_init(cls: Any) -> Any:
    """Compile the ``__init__`` of a dataclass: it sets each field, and makes a new default value for each object."""
    known: dict[str, Any] = {"MISSING": MISSING}
    by_position, by_keyword, lines = ["self"], ["*"], ["    pass"]
    for entry in fields(cls):
        name = value = entry.name
        (by_keyword if entry.kw_only else by_position).append(name + _default(entry, known))
        if entry.default_factory is not MISSING:
            value = f"make_{name}() if {name} is MISSING else {name}"
        lines.append(f"    self.{name} = {value}")
    parameters = ", ".join(by_position + by_keyword * (len(by_keyword) > 1))
    exec("\n".join([f"def __init__({parameters}):", *lines]), known)  # noqa: S102 -- only names of fields
    known["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return known["__init__"]


def _default(entry: Any, known: dict[str, Any]) -> str:
    """Return a field's default as a parameter has it, and add what it names to the ``known`` values."""
    if entry.default_factory is not MISSING:
        known[f"make_{entry.name}"] = entry.default_factory
        return "=MISSING"
    if entry.default is not MISSING:
        known[f"default_{entry.name}"] = entry.default
        return f"=default_{entry.name}"
    return ""


def _no_values(_: object) -> tuple[()]:
    return ()


def _equals(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.compared_values(self) == self.compared_values(other)


def _hash(self: Any) -> int:
    return hash(self.compared_values(self))


def _print(self: Any) -> str:
    shown = ", ".join(f"{entry.name}={getattr(self, entry.name)!r}" for entry in fields(self) if entry.repr)
    return f"{self.__class__.__qualname__}({shown})"


_METHODS = {"__eq__": _equals, "__hash__": _hash, "__repr__": _print}
