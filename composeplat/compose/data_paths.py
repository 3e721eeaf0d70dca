"""The paths at which well-known programs keep their data.

Owns one row for each program: the paths, and the images if a path has another meaning elsewhere.
Must not know files or the model: a path and the name of an image come in, the name of a program goes out.
It is apart because a host folder at such a path holds data, whatever is in it on this machine.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import PurePosixPath

from composeplat.system.records import record


@record
class _Row:
    program: str
    paths: str
    """Patterns of paths in the container."""
    images: str = ""
    """Parts of the names of images; empty for all images."""


_ROWS = (
    _Row("PostgreSQL", "/var/lib/postgresql /var/lib/postgresql/* /var/lib/pgsql/data"),
    _Row("MySQL or MariaDB", "/var/lib/mysql /var/lib/mysql/*"),
    _Row("Microsoft SQL Server", "/var/opt/mssql /var/opt/mssql/data"),
    _Row("Oracle Database", "/opt/oracle/oradata"),
    _Row("MongoDB", "/data/db /data/configdb"),
    _Row("Redis", "/data", "redis valkey keydb dragonfly"),
    _Row("RabbitMQ", "/var/lib/rabbitmq /var/lib/rabbitmq/*"),
    _Row("Cassandra", "/var/lib/cassandra /var/lib/scylla"),
    _Row("CouchDB", "/opt/couchdb/data"),
    _Row("ClickHouse", "/var/lib/clickhouse"),
    _Row("InfluxDB", "/var/lib/influxdb /var/lib/influxdb2"),
    _Row("Neo4j", "/data", "neo4j"),
    _Row("CockroachDB", "/cockroach/cockroach-data"),
    _Row("Elasticsearch", "/usr/share/elasticsearch/data"),
    _Row("OpenSearch", "/usr/share/opensearch/data"),
    _Row("Solr", "/var/solr /var/solr/*"),
    _Row("Meilisearch", "/meili_data"),
    _Row("Qdrant", "/qdrant/storage"),
    _Row("Weaviate", "/var/lib/weaviate"),
    _Row("Kafka", "/var/lib/kafka /var/lib/kafka/data"),
    _Row("ZooKeeper", "/var/lib/zookeeper /var/lib/zookeeper/*"),
    _Row("NATS", "/data", "nats"),
    _Row("Mosquitto", "/mosquitto/data"),
    _Row("etcd", "/etcd-data /var/lib/etcd"),
    _Row("Consul", "/consul/data"),
    _Row("Vault", "/vault/data /vault/file"),
    _Row("MinIO", "/data /export", "minio"),
    _Row("the registry", "/var/lib/registry"),
    _Row("the Bitnami image", "/bitnami /bitnami/*"),
    _Row("Grafana", "/var/lib/grafana"),
    _Row("Prometheus", "/prometheus"),
    _Row("Loki", "/loki"),
    _Row("Gitea", "/data /var/lib/gitea", "gitea forgejo"),
    _Row("GitLab", "/var/opt/gitlab"),
    _Row("Jenkins", "/var/jenkins_home"),
    _Row("Nexus", "/nexus-data"),
    _Row("SonarQube", "/opt/sonarqube/data"),
    _Row("Nextcloud", "/var/www/html /var/www/html/data", "nextcloud"),
    _Row("WordPress", "/var/www/html /var/www/html/wp-content /var/www/html/wp-content/uploads", "wordpress"),
    _Row("Drupal", "/var/www/html/sites /opt/drupal/web/sites", "drupal"),
    _Row("Ghost", "/var/lib/ghost/content"),
    _Row("Mattermost", "/mattermost/data"),
    _Row("n8n", "/home/node/.n8n"),
    _Row("Vaultwarden", "/data", "vaultwarden"),
    _Row("Uptime Kuma", "/app/data", "uptime-kuma"),
    _Row("Portainer", "/data", "portainer"),
    _Row("Caddy", "/data", "caddy"),
    _Row("Home Assistant", "/config", "home-assistant homeassistant"),
    _Row("Frigate", "/config /media/frigate", "frigate"),
    _Row("Node-RED", "/data", "node-red"),
    _Row("Zigbee2MQTT", "/app/data", "zigbee2mqtt"),
    _Row("ESPHome", "/config", "esphome"),
    _Row("the LinuxServer.io image", "/config", "linuxserver/ lscr.io/"),
    _Row("Jellyfin", "/config /cache", "jellyfin"),
    _Row("Emby", "/config", "emby"),
    _Row("Plex", "/config", "plex"),
    _Row("Seerr", "/app/config", "seerr"),
    _Row("Immich", "/data /usr/src/app/upload", "immich-server"),
    _Row("PhotoPrism", "/photoprism/storage /photoprism/originals /photoprism/import"),
    _Row("Navidrome", "/data", "navidrome"),
    _Row("Audiobookshelf", "/config /metadata", "audiobookshelf"),
    _Row(
        "Paperless",
        "/usr/src/paperless/data /usr/src/paperless/media /usr/src/paperless/export /usr/src/paperless/consume",
    ),
    _Row("Mealie", "/app/data", "mealie"),
    _Row("Actual", "/data", "actual-server"),
    _Row("Firefly III", "/var/www/html/storage/upload"),
    _Row("FreshRSS", "/var/www/FreshRSS/data /var/www/FreshRSS/extensions"),
    _Row("Memos", "/var/opt/memos"),
    _Row("Outline", "/var/lib/outline/data"),
    _Row("OpenProject", "/var/openproject/assets"),
    _Row("Odoo", "/var/lib/odoo"),
    _Row("Frappe", "/home/frappe/frappe-bench/sites"),
    _Row("Matomo", "/var/www/html", "matomo"),
    _Row("Joomla", "/var/www/html", "joomla"),
    _Row("NocoDB", "/usr/app/data", "nocodb"),
    _Row("Directus", "/directus/uploads /directus/database"),
    _Row("NetBox", "/opt/netbox/netbox/media"),
    _Row("Plausible", "/var/lib/plausible"),
    _Row("Synapse", "/data", "synapse"),
    _Row("Zulip", "/data", "zulip"),
    _Row("Mastodon", "/mastodon/public/system"),
    _Row("PeerTube", "/data", "peertube"),
    _Row("Pixelfed", "/var/www/storage", "pixelfed"),
    _Row("pict-rs", "/mnt", "pictrs"),
    _Row("Jitsi Meet", "/config", "jitsi/"),
    _Row("the mail server", "/var/mail /var/mail-state", "mailserver"),
    _Row("ntfy", "/var/cache/ntfy /var/lib/ntfy"),
    _Row("Gotify", "/app/data", "gotify"),
    _Row("changedetection.io", "/datastore", "changedetection"),
    _Row("Syncthing", "/var/syncthing"),
    _Row("File Browser", "/database", "filebrowser"),
    _Row("Open WebUI", "/app/backend/data"),
    _Row("Ollama", "/root/.ollama"),
    _Row("Woodpecker", "/var/lib/woodpecker"),
    _Row("Drone", "/data", "drone/drone"),
    _Row("Pi-hole", "/etc/pihole /etc/dnsmasq.d", "pihole"),
    _Row("AdGuard Home", "/opt/adguardhome/work /opt/adguardhome/conf"),
    _Row("Nginx Proxy Manager", "/data /etc/letsencrypt", "nginx-proxy-manager"),
    _Row("Certbot", "/etc/letsencrypt", "certbot"),
    _Row("Traefik", "/letsencrypt /acme", "traefik"),
    _Row("Gluetun", "/gluetun"),
    _Row("Graylog", "/usr/share/graylog/data"),
    _Row("VictoriaMetrics", "/victoria-metrics-data"),
    _Row("Alertmanager", "/alertmanager"),
    _Row("Tempo", "/var/tempo"),
)

#: Names of files without a suffix.
_FILE_NAMES = re.compile(
    r"[A-Z]\w*file\d*|[\w-]*keyfile|LICENSE|README|VERSION|kubeconfig|(docker-)?entrypoint"
    r"|\.env|\.\w+rc|\.git(config|ignore|attributes|-credentials)|\.dockerignore|\.(bash_)?(profile|aliases|history)"
    r"|\.pgpass|\.htpasswd|\.Xauthority|id_(rsa|dsa|ecdsa|ed25519)|authorized_keys|known_hosts"
    r"|passwd|shadow|group|hosts|hostname|crontab|fstab|machine-id"
)


def find_program(path: str, image: str) -> str:
    """Return the program that keeps its data at a path of an image; empty if none is known."""
    return next((row.program for row in _rows_with(path) if _has_name(image, row.images)), "")


@lru_cache(maxsize=1024)
def _rows_with(path: str) -> tuple[_Row, ...]:
    return tuple(row for row in _ROWS if any(fnmatchcase(path, pattern) for pattern in row.paths.split()))


def _has_name(image: str, parts: str) -> bool:
    return not parts or any(part in image.lower() for part in parts.split())


def is_database_file(name: str) -> bool:
    """Whether a file is one of SQLite's by its usual name; those beside a database have its name and an end."""
    return re.search(r"[^/]\.(?:db3?|sqlite3?)(?:-journal|-shm|-wal)?\Z", name, re.IGNORECASE) is not None


def looks_like_file(target: str) -> bool:
    """Whether a path in a container is rather a file than a folder.

    It has a suffix, which is not that of ``conf.d``, or the name of a file that has none, such as ``Caddyfile``, or it
    is at the place of a secret.
    """
    path = PurePosixPath(target)
    is_named = path.suffix not in ("", ".d") or _FILE_NAMES.fullmatch(path.name) is not None
    return is_named or str(path.parent) in ("/run/secrets", "/var/run/secrets")
