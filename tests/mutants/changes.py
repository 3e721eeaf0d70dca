"""Which changes of one token a module allows.

Owns what is changed into what, and what is left alone since no run could show: annotations, decorators, asserts, and
what only a type checker sees.
Texts are not changed, and neither is what is in an f-string: until Python 3.12 its parts have no true place.
"""

from __future__ import annotations

import ast
import io
import tokenize
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARED = {
    "==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "in": "not in", "is": "is not",
}  # fmt: skip
_COMBINED = {"+": "-", "-": "+", "*": "//", "/": "*", "//": "*", "%": "*", "|": "&", "&": "|"}
_ADDED = {"+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=", "*=": "//="}
_JOINED = {"and": "or", "or": "and"}


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A piece of a text that becomes another, and the first and last line of the statement it is in.

    ``imported`` says that the statement runs when the module is imported, whatever the test.
    """

    start: int
    end: int
    new: str
    line: int
    first: int
    last: int
    imported: bool

    def apply(self, text: str) -> str:
        return text[: self.start] + self.new + text[self.end :]


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    text: str


def find_changes(text: str) -> list[Change]:
    """Every change of one token, in the order of the text."""
    finder = _Finder(text)
    finder.visit(ast.parse(text))
    return sorted(set(finder.found))


class _Finder(ast.NodeVisitor):
    def __init__(self, text: str) -> None:
        self.found: list[Change] = []
        self._text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._tokens = [
            _Token(
                self._starts[token.start[0] - 1] + token.start[1],
                self._starts[token.end[0] - 1] + token.end[1],
                token.string,
            )
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.string.strip()
        ]
        self._token_starts = [token.start for token in self._tokens]
        self._span = (1, 1)
        self._functions = 0

    # places -----------------------------------------------------------------------------------------------------------

    def _offset(self, line: int, column: int) -> int:
        """The place of a node, which counts bytes, in the text."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)

    def _between(self, start: int, end: int) -> Iterator[_Token]:
        for index in range(bisect_left(self._token_starts, start), len(self._tokens)):
            if self._tokens[index].start >= end:
                return
            yield self._tokens[index]

    def _add(self, start: int, end: int, new: str) -> None:
        line = bisect_left(self._starts, start + 1)
        self.found.append(Change(start, end, new, line, *self._span, not self._functions))

    def _swap(self, start: int, end: int, others: dict[str, str]) -> None:
        """Change the one token between two places that has another."""
        for token in self._between(start, end):
            if token.text in others:
                self._add(token.start, token.end, others[token.text])
                return

    # statements -------------------------------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before = self._span
        body = getattr(node, "body", None)
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        self._span = (node.lineno, max(node.lineno, last))
        super().visit(node)
        self._span = before

    def _each(self, *nodes: ast.AST | None) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._each(*node.args.defaults, *node.args.kw_defaults)
        self._functions += 1
        self._each(*node.body)
        self._functions -= 1

    visit_FunctionDef = _visit_function  # noqa: N815 -- ast calls it so
    visit_AsyncFunctionDef = _visit_function  # noqa: N815 -- the same

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._each(*node.body)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._each(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._swap(self._end(node.target), self._start(node.value), _ADDED)
        self._each(node.value)

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave it alone."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave it alone."""

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._add(self._start(node), self._end(node), "pass")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(self._start(node), self._end(node), "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        is_none = isinstance(node.value, ast.Constant) and node.value.value is None
        if node.value is not None and not is_none:
            self._add(self._start(node), self._end(node), "return None")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(self._start(node), self._end(node), "break")

    def visit_Break(self, node: ast.Break) -> None:
        self._add(self._start(node), self._end(node), "continue")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    # expressions ------------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for condition in node.ifs:
            self._negate(condition)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        """Turn a condition round that has no operator to change."""
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            self._add(self._start(test), self._start(test), "not ")

    def visit_Compare(self, node: ast.Compare) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            start, end = self._end(left), self._start(right)
            if isinstance(operator, ast.NotIn | ast.IsNot):
                (negation,) = (token for token in self._between(start, end) if token.text == "not")
                self._add(negation.start, negation.end, "")
            else:
                self._swap(start, end, _COMPARED)
            left = right
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap(self._end(left), self._start(right), _JOINED)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            start = self._start(node)
            self._add(start, start + len("not"), "")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._swap(self._end(node.left), self._start(node.right), _COMBINED)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(self._start(node), self._end(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add(self._start(node), self._end(node), str(node.value + 1))
