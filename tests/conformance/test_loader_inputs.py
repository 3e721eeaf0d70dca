"""Whole definitions of Compose's own loader tests: what its reference implementation takes, we take, and what not, not.

Where the two differ a table below says why, and by which code: a vector that comes to agree must leave the table.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from composeplat.compose.load import Request, load
from composeplat.diagnostics import Severity
from composeplat.plan import make_plan
from composeplat.render.manifests import render_yaml
from tests.conftest import SHARED, shared
from tests.kubernetes_schema import problems_of

pytestmark = pytest.mark.shared

#: What the original tests set before they load.
VARIABLES = {
    "FOO_SCALE": "2",
    "theduration": "1m",
    "thefloat": "3.14",
    "thebool": "true",
    "theint": "555",
    "thesize": "512m",
}


@dataclass(frozen=True)
class Refused:
    """Vectors that the original takes and we refuse, with the code of our refusal."""

    why: str
    code: str
    vectors: frozenset[str]


def refused(why: str, code: str, vectors: str) -> Refused:
    return Refused(why, code, frozenset(vectors.split()))


#: In the default mode alone.
REFUSED_BY_DEFAULT = (
    refused("'provider' is ignored, so the service lacks an image", "no-image", "TestProvider-0"),
    refused(
        "'extends' is only warned, so nothing gives these services an image",
        "no-image",
        """
        TestExtends-0 TestExtendsPortOverride-0 TestExtendsRelativePath-0 TestExtendsUlimits-0
        TestExtendsWithServiceRef-0 TestExtendsWithServiceRef-1 TestExtendsWithServiceRef-2 TestLoadExtendsDependsOn-0
        TestLoadExtendsListenerMultipleFiles-0 TestLoadExtendsSameFile-1 TestLoadExtendsWihReset-0
        TestLoadWithRemoteResources-0 TestParseYAMLFilesMergeOverride-0
        """,
    ),
)

#: In full mode alone.
REFUSED_IN_FULL_MODE = (
    refused(
        "the original refuses it too: its error is one of several documents in a test, and the vectors lack it",
        "undefined-service",
        "TestExtendsWithServiceRef-1 TestExtendsWithServiceRef-2",
    ),
    refused("the image is in another file of the original test", "no-image", "TestLoadExtendsListenerMultipleFiles-0"),
    refused("no service of the document has an image", "no-image", "TestParseYAMLFilesMergeOverride-0"),
    refused(
        "the scheme 'remote:' is one of the original test alone", "unreadable-file", "TestLoadWithRemoteResources-0"
    ),
    refused("a sysctl without a value, which Kubernetes refuses", "invalid-value", "TestSysctls-0"),
    refused("Swarm refuses a constraint without '==' too", "invalid-value", "TestDeployPlacement-0"),
    refused("no resource of Kubernetes is known for this driver", "invalid-value", "TestGpus-0"),
    refused(
        "the original test switches off the check of references",
        "undefined-network",
        "TestOverrideMiddle-0 TestOverrideMiddle-1 TestOverrideNetworks-1",
    ),
    refused(
        "the original test switches off the check of references",
        "undefined-secret",
        "TestSecretFileModeNumber-0 TestSecretFileModeString-0",
    ),
    refused("a driver of Swarm has the secret, and a cluster lacks it", "missing-key", "TestSecretDriver-0"),
)

#: Files that the original tests write, which the vectors lack: our own, with the same services.
BESIDE = {
    "config_data": "",
    "secret_data": "",
    "sub/compose.yaml": "services: {base: {build: {context: ..}}, service: {extends: base, build: {target: last}}}",
    "example1.label": "com.example.one=1",
    "example2.label": "com.example.two=2",
}

REFUSED_HERE = (
    refused(
        "services without an image, made for a test that looks at another key",
        "no-image",
        """
        TestDirectAliasWithReset-1 TestLoadLegacyBoolean-0 TestLoadWithInterpolationCastFull-0 TestLoadWithLabelFile-0
        TestNestedAliasReset-1 TestNormalizeDependsOn-0 TestNormalizeDependsOn-1 TestNormalizeEnvironment-0
        TestNormalizeImplicitDependencies-0 TestNormalizeImplicitDependencies-1
        TestOverrideMiddle-0 TestOverrideMiddle-1
        """,
    ),
    refused(
        "a host path that is not there is an error: a cluster can't create it",
        "missing-path",
        """
        TestLoadBindMountSourceIsWindowsAbsolute-3 TestLoadWithInclude-0 TestLoadWithInclude-1
        TestLoadWithMultipleIncludeConflict-0 TestOverrideMiddle-0 TestOverrideMiddle-1 TestOverrideMiddle-2
        TestVolumeBindCreateHostPathDefault-0 TestVolumeBindSELinux-0
        """,
    ),
    refused(
        "the original test switches off the check of references",
        "undefined-service",
        "TestNormalizeImplicitDependencies-0 TestNormalizeImplicitDependencies-1",
    ),
    refused("the original test switches off the check of references", "undefined-volume", "TestLoadVolumeSubpath-0"),
    refused(
        "a path inside a Windows container: clusters here run Linux",
        "invalid-value",
        """
        TestLoadBindMountSourceIsWindowsAbsolute-0 TestLoadBindMountSourceIsWindowsAbsolute-1
        TestLoadBindMountSourceIsWindowsAbsolute-2
        """,
    ),
    refused(
        "a tab where YAML wants spaces, which the original's reader forgives",
        "invalid-yaml",
        "TestLoadTmpfsVolume-0 TestResolveAdditionalContexts-0",
    ),
)

#: Vectors that the original refuses and we take: the mistake is below a key that is warned or ignored as a whole.
TAKEN_HERE: dict[str, str] = {}
#: In the default mode alone.
TAKEN_BY_DEFAULT = {
    "TestDevelopMissingAction-0": "develop is ignored",
    "TestServiceDeviceRequestCapabilitiesMandatory-0": "reservations.devices is warned",
    "TestServiceDeviceRequestCountAndDeviceIdsExclusive-0": "reservations.devices is warned",
    "TestServiceDeviceRequestCountInvalidStringType-0": "reservations.devices is warned",
}


def vectors() -> dict[str, Any]:
    path = SHARED / "conformance" / "loader_inputs.json"
    cases = json.loads(path.read_text()) if path.exists() else []
    return {f"{case['test']}-{case['i']}": case for case in cases}


VECTORS = vectors()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the definitions stand: beside the files of the original tests."""
    made = tmp_path_factory.mktemp("vectors") / "loader"
    shutil.copytree(shared("conformance", "loader_testdata"), made / "testdata")
    vectors = {"base.yaml": "TestOverrideMiddle-0", "override.yaml": "TestOverrideMiddle-1"}
    for name, text in {**BESIDE, **{name: VECTORS[vector]["yaml"] for name, vector in vectors.items()}}.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    return made


def read(definition: str, folder: Path, *, full: bool) -> tuple[set[str], str]:
    """The codes of the errors, and what is rendered where there are none."""
    (folder / "compose.yaml").write_text(definition)
    # Paths of the original tests lie anywhere.
    request = Request(files=("compose.yaml",), folder=folder, shell=VARIABLES, domain="example.com", allow_outside=True)
    loaded = load(replace(request, full=full))
    rendered = ""
    if not loaded.report.errors:
        rendered = render_yaml(make_plan(loaded.project, loaded.settings, loaded.origins, loaded.report))
    return {d.code for d in loaded.report.at_least(Severity.ERROR)}, rendered


@pytest.mark.parametrize("full", [False, True], ids=["default", "full"])
@pytest.mark.parametrize("name", VECTORS or ["absent"])
def test_refused_where_the_original_refuses(name: str, folder: Path, *, full: bool) -> None:
    """A definition is refused if the original refuses it, else taken, but for the listed differences.

    What is taken gives objects that an API server takes.
    """
    codes, rendered = read(VECTORS[name]["yaml"], folder, full=full)

    refused_here = (*REFUSED_HERE, *(REFUSED_IN_FULL_MODE if full else REFUSED_BY_DEFAULT))
    ours = {group.code for group in refused_here if name in group.vectors}
    taken_here = TAKEN_HERE if full else {**TAKEN_HERE, **TAKEN_BY_DEFAULT}
    if VECTORS[name]["errors"] and name not in taken_here:
        assert codes
    else:
        assert codes == ours
    assert problems_of(yaml.load_all(rendered if not codes else "", Loader=yaml.CSafeLoader)) == []


def test_the_tables_name_vectors() -> None:
    """A name in a table that is no vector, or that the original treats as the table does, would excuse nothing."""
    groups = (*REFUSED_HERE, *REFUSED_BY_DEFAULT, *REFUSED_IN_FULL_MODE)
    excused = {name for group in groups for name in group.vectors}

    assert [name for name in excused if name not in VECTORS or VECTORS[name]["errors"]] == []
    assert [name for name in {**TAKEN_HERE, **TAKEN_BY_DEFAULT} if not VECTORS[name]["errors"]] == []
