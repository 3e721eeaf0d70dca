"""Reading and changing a cluster without Pulumi: the kubeconfig, the API, the status of workloads, their failures.

Owns every request to an API server.
Must not know the rules of Compose: names and labels come in.
"""
