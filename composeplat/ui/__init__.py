"""The page that shows environments in a browser, and its server.

Owns the page's files, who may use it, and how documents and log lines reach it.
Must not know Compose, Kubernetes or Pulumi: the command line gives it documents, those that ``--json`` prints, so that
the page shows nothing that the terminal does not.
"""
