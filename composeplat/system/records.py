"""Records: dataclasses that never change, whose classes are quick to make.

Owns how records are compared, hashed and printed. Must not know any record.
A frozen dataclass compiles six methods for each class. A command imports over a hundred of these classes, and that was
a third of the time of a short run. A record compiles ``__init__`` only; the other methods are the same for all.

mypy refuses an assignment to a field; nothing refuses it at run time. Everything else is as in a dataclass with
``frozen`` and ``slots``, such as :func:`dataclasses.replace` and :func:`dataclasses.fields`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
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
    return _make(cls, kw_only=False) if cls else lambda found: _make(found, kw_only=kw_only)


def _make(cls: type[Any], *, kw_only: bool) -> type[Any]:
    # Without a docstring, a dataclass writes one with its signature, which takes as long as all the rest.
    cls.__doc__ = cls.__doc__ or cls.__name__
    own = vars(cls).keys()
    made: Any = dataclass(slots=True, eq=False, repr=False, kw_only=kw_only)(cls)
    compared = [entry.name for entry in fields(made) if entry.compare]
    made.compared_values = staticmethod(attrgetter(*compared) if compared else _no_values)
    for name, method in _METHODS.items():
        if name not in own:
            setattr(made, name, method)
    found: type[Any] = made
    return found


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
