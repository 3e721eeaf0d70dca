"""The rules of axe-core for pages that everybody can use, run in the browser."""

from __future__ import annotations

import functools
from typing import Any

from tests.conftest import ROOT
from tests.devtools import Tab
from tests.node_packages import node_modules

#: Without `preload`, which reads styles that a page has from elsewhere: the policy would stop that.
_RUN = """
window.axeFindings = null;
axe.run(document, {resultTypes: ["violations"], preload: false}).then(found => {
    const describe = node => `${node.target} ${node.failureSummary}`;
    window.axeFindings = found.violations.map(rule => `${rule.id}: ${rule.nodes.slice(0, 3).map(describe).join("; ")}`);
}, error => { window.axeFindings = [`${error}`]; });
"""


@functools.cache
def _source() -> str:
    folder = node_modules(ROOT / "tests" / "ui" / "packages")
    return (folder / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(tab: Tab) -> list[Any]:
    """Return the rules that the page violates; the policy of the page stops no script of a debugger."""
    if not tab.run("typeof axe === 'object'"):
        tab.run(_source() + ";0")
    tab.run(_RUN + "0")
    tab.wait_for("window.axeFindings !== null")
    found: list[Any] = tab.run("window.axeFindings")
    return found
