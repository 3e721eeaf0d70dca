"""A policy pack that is a program: Pulumi's protocol for policies, without its SDK for them.

Pulumi starts it with the address of its engine, reads a port from it, and asks it about each resource.
"""

from __future__ import annotations

import sys
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty  # type: ignore[import-untyped]
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from pulumi.runtime.proto import analyzer_pb2 as messages, analyzer_pb2_grpc as service, plugin_pb2

PACK, POLICY = "program", "names"


class Analyzer(service.AnalyzerServicer):
    """Refuses each Deployment whose name is not that of a team."""

    def Handshake(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return messages.AnalyzerHandshakeResponse()

    def GetAnalyzerInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        policy = messages.PolicyInfo(name=POLICY, enforcementLevel=messages.MANDATORY)
        return messages.AnalyzerInfo(name=PACK, version="1.0.0", policies=[policy])

    def GetPluginInfo(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return plugin_pb2.PluginInfo(version="1.0.0")

    def ConfigureStack(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return messages.AnalyzerStackConfigureResponse()

    def Configure(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return Empty()

    def Remediate(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return messages.RemediateResponse()

    def AnalyzeStack(self, _request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        return messages.AnalyzeResponse()

    def Analyze(self, request: Any, _context: Any) -> Any:  # noqa: N802 -- the protocol's word
        name = MessageToDict(request.properties).get("metadata", {}).get("name", "")
        if not request.type.endswith(":Deployment") or name.startswith("team-"):
            return messages.AnalyzeResponse()
        found = messages.AnalyzeDiagnostic(
            policyName=POLICY, policyPackName=PACK, policyPackVersion="1.0.0", message=f"'{name}' names no team",
            enforcementLevel=messages.MANDATORY, urn=request.urn,
        )  # fmt: skip
        return messages.AnalyzeResponse(diagnostics=[found])


if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(4))
    service.add_AnalyzerServicer_to_server(Analyzer(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    # Pulumi keeps standard input open as long as it runs, or ends this process.
    server.wait_for_termination()
    sys.exit()
