"""The objects of a file of manifests, each as a resource of its own class: what one would write by hand.

It has no components, so a resource less for each service than ours.
``MANIFESTS`` names the file. With ``WAITS=true`` Pulumi waits until the objects are ready.
"""

import os

import pulumi
import yaml
from pulumi_kubernetes.apps.v1 import Deployment
from pulumi_kubernetes.core.v1 import Service

with open(os.environ["MANIFESTS"], encoding="utf-8") as stream:
    documents = list(yaml.load_all(stream, yaml.CSafeLoader))

for document in documents:
    metadata = document["metadata"]
    if os.environ.get("WAITS") != "true":
        metadata["annotations"] = {**metadata.get("annotations", {}), "pulumi.com/skipAwait": "true"}
    resource = {"Deployment": Deployment, "Service": Service}[document["kind"]]
    resource(f"{document['kind'].lower()}-{metadata['name']}", metadata=metadata, spec=document["spec"])

pulumi.export("objects", len(documents))
