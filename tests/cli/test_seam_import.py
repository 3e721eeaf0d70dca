"""`platform import` with its operations replaced: how its outcomes are shown."""

from __future__ import annotations

from composeplat.engine.adoption import Action, Adoption, LiveObjects
from composeplat.engine.events import Violation
from composeplat.engine.operations.import_objects import Found
from composeplat.engine.outcomes import Outcome as Came
from composeplat.engine.preflight import LiveState
from tests.cli.conftest import Seam, data


def test_a_policy_that_refuses(seam: Seam) -> None:
    """The import has failed, with the violation."""
    entry = Adoption(action=Action.ADOPT, kind="Service", name="web", path=("services", "web"))
    found = Found(LiveObjects(state=LiveState(), objects={}), (entry,))
    seam.patch.setattr("composeplat.engine.operations.import_objects.find_objects", lambda *_: found)
    urn = "urn:pulumi:team::demo::t::demo-workload/web"
    violation = Violation(pack="rules", policy="p", level="mandatory", message="no root", urn=urn)
    seam.gives("import_objects.import_objects", Came(violations=[violation]))

    outcome = seam.platform("import", "--yes")

    assert outcome.status == 1
    assert "no root" in outcome.stderr
    assert outcome.stderr.endswith(
        "a policy refuses demo in namespace team; the objects have its labels, and stay as they are\n"
    )
    assert data(seam.platform("import", "--yes", "--json"))["status"] == "failed"
