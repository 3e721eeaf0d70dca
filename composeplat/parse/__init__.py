"""Read nodes into the typed model: the one place where Compose's short and long forms are settled.

One module a section of the definition; :mod:`composeplat.parse.fields` holds what they share.
Must not know files, Kubernetes or the other services: what needs the whole project is :mod:`composeplat.check`'s.
A bad key ends only that key: the report has the reason, and reading goes on with its default.
"""

from composeplat.parse.fields import Context
from composeplat.parse.project import parse_project

__all__ = ["Context", "parse_project"]
