"""The names of Pulumi's SDK that no version of it promises, looked up in one place.

Owns the list of these names, and the error if the installed SDK lacks one of them.
Must not know the purpose: :mod:`~composeplat.engine.inline_program` serves a program with them.
It is apart, so that one test checks the pinned SDK, and an upgrade of the SDK changes this module alone.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

from composeplat.diagnostics import MissingPiece
from composeplat.system.records import record

#: The version that the tests run with.
TESTED_VERSION = "3.272.0"


@record
class SdkName:
    module: str
    name: str

    def find(self) -> Any:
        """Get the object; an SDK without it is refused."""
        try:
            return getattr(import_module(self.module), self.name)
        except (ImportError, AttributeError) as error:
            raise self._missing() from error

    def replace(self, value: Any) -> Any:
        """Replace an object, and return the previous one."""
        before = self.find()
        setattr(import_module(self.module), self.name, value)
        return before

    def _missing(self) -> MissingPiece:
        return MissingPiece(
            f"the installed Pulumi SDK, {version('pulumi')}, has no '{self.module}.{self.name}', which a deploy uses",
            f"install the version that platform is tested with: pip install pulumi=={TESTED_VERSION}",
        )


LANGUAGE_SERVER = SdkName("pulumi.automation._server", "LanguageServer")
CHANNEL_OPTIONS = SdkName("pulumi.runtime._grpc_settings", "_GRPC_CHANNEL_OPTIONS")
CLIENT_OPTIONS = SdkName("pulumi.runtime.settings", "_GRPC_CHANNEL_OPTIONS")
ADD_LANGUAGE_SERVER = SdkName("pulumi.runtime.proto.language_pb2_grpc", "add_LanguageRuntimeServicer_to_server")
SETTINGS = SdkName("pulumi.runtime.settings", "SETTINGS")
GET_STACK_TRACE = SdkName("pulumi.runtime.resource", "_get_stack_trace")
STACK_TRACE = SdkName("pulumi.runtime.proto.source_pb2", "StackTrace")
LOG_DEBUG = SdkName("pulumi.log", "debug")
SDK_NAMES = (
    LANGUAGE_SERVER,
    CHANNEL_OPTIONS,
    CLIENT_OPTIONS,
    ADD_LANGUAGE_SERVER,
    SETTINGS,
    GET_STACK_TRACE,
    STACK_TRACE,
    LOG_DEBUG,
)


def pending_outputs() -> list[Any]:
    """The tasks of a program's outputs that are not done."""
    return [task for task in SETTINGS.find().outputs if not task.done()]
