"""The container ports that are never public, unless the definition names them for it.

Owns this list, which endpoints and exposed ports share.
"""

from __future__ import annotations

#: The container ports of databases, queues and debuggers.
NEVER_PUBLIC = frozenset({
    3306, 1521, 1830, 5432, 1433, 1434, 7210, 7473, 7474, 8529, 7000, 7001, 9042, 8086, 9200, 9300, 5984, 27017, 27018,
    27019, 28017, 6379, 8087, 8088, 8098, 28015, 29015, 7574, 8983, 2345, 5858, 9229, 5005, 1234, 4444, 5678,
})  # fmt: skip
