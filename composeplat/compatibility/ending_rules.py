"""Rules about services whose command ends by itself: it creates a bucket, a certificate or the tables of a database.

Owns how such commands are recognized. A script counts if its last statement ends, and nothing before it runs on.
In Docker a service without ``restart`` is not started again. Here it is a server, whose pod is restarted each time.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from composeplat.compatibility.port_rules import Use
from composeplat.compose.model import ALWAYS, Service
from composeplat.compose.nodes import Node, find_node
from composeplat.compose.origins import Checker
from composeplat.compose.parse.project import sets_restart
from composeplat.diagnostics import PathKey
from composeplat.registry.image_reference import ImageReference

_SHELL = re.compile(r"(?:.*/)?(?:a|ba|da|k|z)?sh")
_TEXT_FOLLOWS = re.compile(r"-[a-z]*c")
_SEPARATORS = ";&|\n()"
_SUBSTITUTION = re.compile(r"\$\([^()]*\)")
#: Statements that run on, wherever they are in a script.
_ENDLESS = re.compile(r"\bwhile\s+(?:true|:|\[+\s*(?:1|true))|\bsleep\s+inf|\btail\s+(?:\S+\s+){0,8}-\w*[fF]|\bwait\b")
#: The ends of a compound statement, before which its own last statement is.
_CLOSING = frozenset(("done", "esac", "fi", "}"))
#: Words before a statement that are not its program.
_BEFORE = re.compile(
    r"(?:(?:\w+=\S*|then|else|do|exec|time|sudo|npx|pnpx|bunx|\{|(?:bundle|docker-php) exec|(?:poetry|uv|pipenv) run"
    r"|python3? -m)\s+)+"
)
#: Programs that end, whatever their arguments.
_PROGRAM = re.compile(
    r"(?:\S*/)?(?::|\[|chmod|chown|cp|createdb|curl|echo|exit|false|keytool|kafka-(?:topics|configs)(?:\.sh)?|ln"
    r"|mkdir|mv|openssl|pg_dump|pg_restore|printf|rm|ssh-keygen|tar|test|touch|true|unzip|wget)(?:\s|$)"
)
#: Programs that end with these arguments.
_TASK = re.compile(
    r"(?:\S*/)?(?:"
    r"psql\s.*(?:-c|-f|--command|--file)\b|(?:mysql|mariadb)\s.*(?:-e|--execute)\b|(?:mongo|mongosh)\s.*--eval\b"
    r"|mc (?:alias|anonymous|config|cp|ilm|mb|policy|version)\b|aws s3 (?:cp|mb)\b|aws s3api\b"
    r"|redis-cli\s.*--cluster create\b|rabbitmqadmin\b|cockroach init\b"
    r"|(?:python3? )?(?:\S*/)?manage\.py (?:collectstatic|createcachetable|createsuperuser|loaddata|migrate)\b"
    r"|alembic\s(?:.*\s)?upgrade\b|aerich upgrade\b|(?:flask|superset) (?:db upgrade|init)\b|superset fab\b"
    r"|airflow (?:db (?:init|migrate|upgrade)|users create|version)\b"
    r"|(?:rails|rake)\s(?:.*\s)?db:\w+|(?:php )?artisan (?:migrate|db:|key:|config:|storage:)"
    r"|(?:php )?(?:\S*/)?console (?:cache|doctrine):|mix (?:ecto\.|deps\.)\w+"
    r"|prisma (?:db (?:push|seed)|generate|migrate (?:deploy|reset))\b|drizzle-kit (?:generate|migrate|push)\b"
    r"|(?:knex|sequelize|sequelize-cli|typeorm)\s(?:.*\s)?(?:db:|migrat\w+:|seed:)\w+"
    r"|(?:bun|npm|pnpm|yarn)(?: run)? (?:db:|prisma:)?(?:migrat\w*|seed)(?:[:\w-]*)(?:\s|$)"
    r"|dotnet ef database update\b|(?:dbmate|goose|migrate)\s(?:.*\s)?(?:migrate|up)\b"
    r"|flyway\s(?:.*\s)?(?:migrate|repair)\b|liquibase\s(?:.*\s)?update\b)"
)
#: Images whose entry point is the program of their name.
_IMAGES = frozenset(("dbmate", "flyway", "liquibase", "mc", "migrate"))
_WATCHING = re.compile(r"\s--?w(?:atch)?(?:\s|=|$)|:(?:dev|watch)\b|\btrace\b")


def check_endings(checker: Checker, uses: Mapping[str, Sequence[Use]], document: Node | None) -> None:
    """Report commands that end by themselves in a service that has no ``restart``, and no address either."""
    for service in checker.project.services.values():
        is_server = (
            service.ports
            or service.replicas != 1
            or service.is_global
            or any(use.port for use in uses.get(service.name, ()))
        )
        if (
            service.restart != ALWAYS
            or is_server
            or sets_restart(find_node(document, "services", service.name))
            or not ends(service)
        ):
            continue
        path = _path_of_command(service)
        message = "ends by itself, and a service without 'restart' is a server, which is started again each time"
        hint = "set restart: 'no', which makes it a job"
        if not can_be_job(service):
            hint = f"it shares the pod of '{service.pod_owner}': make it a service of its own, with restart: 'no'"
        checker.add("ending-command", path, message, hint)


def can_be_job(service: Service) -> bool:
    """Whether the service has a pod of its own, whose restarts it decides."""
    return service.pod_owner == service.name


def _path_of_command(service: Service) -> PathKey:
    return ("services", service.name, "command" if service.command else "entrypoint")


def ends(service: Service) -> bool:
    """Whether the command of a service is known to end."""
    args = [*(service.entrypoint or ()), *(service.command or ())]
    script = _script(args)
    if script is not None:
        return _script_ends(script)
    if args and not service.entrypoint:
        name = ImageReference.parse(service.image).repository.rpartition("/")[2]
        args = [name, *args] if name in _IMAGES else args
    return _statement_ends(" ".join(args))


def _script(args: list[str]) -> str | None:
    """Return the text that a shell is given; None if the command is no shell's, or a file's."""
    if not args or not _SHELL.fullmatch(args[0]):
        return None
    place = next((i for i, word in enumerate(args[1:], 1) if not word.startswith("-")), 0)
    return args[place] if place and _TEXT_FOLLOWS.fullmatch(args[place - 1]) else None


def _script_ends(script: str) -> bool:
    lexer = shlex.shlex(_SUBSTITUTION.sub("x", script.replace("\\\n", " ")), posix=True, punctuation_chars=_SEPARATORS)
    lexer.whitespace, lexer.commenters = " \t\r", ""
    try:
        tokens = list(lexer)
    except ValueError:  # a quotation that is not closed
        return False
    if _ENDLESS.search(script) or "&" in tokens:
        return False
    statements: list[list[str]] = [[]]
    for token in tokens:
        if token.strip(_SEPARATORS):
            statements[-1].append(token)
        else:
            statements.append([])
    simple = [" ".join(parts) for parts in statements if parts and parts[0] not in _CLOSING]
    return bool(simple) and _statement_ends(simple[-1])


def _statement_ends(statement: str) -> bool:
    own = statement[found.end() :] if (found := _BEFORE.match(statement)) else statement
    is_task = _PROGRAM.match(own) or _TASK.match(own)
    return bool(is_task) and not _WATCHING.search(own)
