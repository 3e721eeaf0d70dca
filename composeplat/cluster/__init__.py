"""The one reader of clusters outside Pulumi.

Owns what is asked of a cluster, or of the kubeconfig that names one.
Must not know Compose: it is given names and labels.
"""
