"""An admission webhook that names the registry of images, as the policies of some companies do.

It runs as a program of its own, in the network of the API server: ``python webhook.py PORT CERTIFICATE KEY``.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

REGISTRY = "docker.io/library/"


def patch(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """The changes of a workload: each image without a registry gets one."""
    spec, path = workload["spec"], "/spec"
    if "jobTemplate" in spec:
        spec, path = spec["jobTemplate"]["spec"], "/spec/jobTemplate/spec"
    return [
        {
            "op": "replace",
            "path": f"{path}/template/spec/containers/{index}/image",
            "value": f"{REGISTRY}{container['image']}",
        }
        for index, container in enumerate(spec["template"]["spec"]["containers"])
        if "/" not in container["image"]
    ]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        response = {
            "uid": request["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch(request["object"])).encode()).decode(),
        }
        body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def main(port: str, certificate: str, key: str) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), _Handler)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
