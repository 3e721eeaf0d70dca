"""Every diagnostic code: its severity, its meaning and its fix.

Owns the one table behind the messages; ``docs/diagnostics.md`` is made from it, and a test holds that each code is
raised by some test. Must not know anything else.
Codes are public names: scripts match on them, so renaming one breaks users.
"""

from __future__ import annotations

from composeplat.codes.cluster import CLUSTER_CODES
from composeplat.codes.code import Code, Effect, Severity

__all__ = ["BY_KEY", "CODES", "Code", "Effect", "Severity"]

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE
_CHANGED, _LOST, _CANNOT_RUN = Effect.CHANGED, Effect.LOST, Effect.CANNOT_RUN

CODES: dict[str, Code] = {
    # files
    "no-compose-file": Code(_E, "No Compose file was found.", "Name one with -f, or go to the folder that has one."),
    "unreadable-file": Code(
        _E,
        "A file the definition needs can't be read: missing, a folder, a pipe or device, too large, no permission.",
        "Correct the path, or make it an ordinary file.",
        many=True,
    ),
    "multiple-compose-files": Code(
        _W, "The folder has several files of a default name; the first is used.", "Name it with -f."
    ),
    "invalid-utf8": Code(_E, "The file is not UTF-8 text.", "Save it as UTF-8."),
    "invalid-character": Code(_E, "The text has a control character that YAML forbids.", "Remove it."),
    # YAML
    "invalid-yaml": Code(_E, "The text is not YAML.", "See the place and the reason given."),
    "too-deep": Code(_E, "Collections are nested deeper than any Compose file needs.", "Flatten the definition."),
    "too-large": Code(
        _E, "The definition, or the text that variables add to it, is too large.", "Split it, or remove other content."
    ),
    "too-many-aliases": Code(
        _E, "Aliases unfold to far more than the file has (an alias bomb).", "Write fewer nested aliases."
    ),
    "recursive-alias": Code(_E, "An anchor contains an alias to itself.", "Break the cycle."),
    "duplicate-key": Code(_E, "A key is set twice in one mapping.", "Keep one of them."),
    "non-string-key": Code(_E, "A key is not text (a bare number, boolean or null, or a collection).", "Quote it."),
    "invalid-merge-key": Code(_E, "A merge key '<<' has a value that is no mapping.", "Give it an alias of a mapping."),
    "unknown-tag": Code(_W, "A YAML tag that means nothing here.", "Remove it; Compose knows !reset and !override."),
    # variables
    "invalid-interpolation": Code(_E, "A '${…}' that can't be understood.", "Write ${NAME}, or $$ for a dollar sign."),
    "required-variable": Code(_E, "A variable written as ${NAME:?…} is not set.", "Set it.", many=True),
    "unset-variable": Code(
        _W,
        "A variable is not set; an empty string is used.",
        "Set it, or give a default: ${NAME:-default}. For a dollar sign, as in the hash of a password, write $$.",
        once=True,
    ),
    "invalid-env-file": Code(_E, "A line of an env file can't be understood.", "Write NAME=value."),
    # shapes
    "invalid-type": Code(_E, "A value has the wrong type for its key.", "See what was expected."),
    "invalid-value": Code(_E, "A value is not valid for its key.", "See what was expected.", many=True),
    "missing-key": Code(_E, "A required key is missing.", "Add it.", many=True),
    "conflicting-keys": Code(_E, "Two keys that exclude each other are both set.", "Keep one of them.", many=True),
    "overridden-key": Code(
        _W, "Two keys set different values; one overrides the other.", "Keep one of them.", many=True, effect=_CHANGED
    ),
    "no-image": Code(_E, "A service has neither 'image' nor 'build'.", "Set one of them."),
    "no-services": Code(_E, "The definition has no services.", "Add one under 'services'."),
    # keys
    "unsupported-key": Code(_W, "Compose knows the key, but it has no effect here.", "Remove it, or ignore this."),
    "no-effect": Code(
        _W, "A setting has no effect here; the message says why.", "Remove it, or ignore this.", many=True, effect=_LOST
    ),
    "redundant-key": Code(
        _N,
        "A setting has no effect here, and needs none: it asks for the default.",
        "Nothing to do.",
        summary=(
            "{count} setting has no effect here, and needs none: {keys}",
            "{count} settings have no effect here, and need none: {keys}",
        ),
    ),
    "kompose-label": Code(
        _W,
        "A label of kompose has no effect here; the hint says what to write instead.",
        "Write that, and remove the label.",
        many=True,
        effect=_LOST,
    ),
    "ignored-key": Code(_N, "A key that is ignored on purpose.", "Nothing to do."),
    "unknown-key": Code(
        _N,
        "Neither Compose nor this tool knows the key; it may be a typo.",
        "Correct it; --strict makes it an error.",
        _LOST,
    ),
    "unused-volume": Code(_N, "No service mounts the volume, and it is not created.", "Nothing to do."),
    "unused-config": Code(_N, "No service uses the config, and it is not created.", "Nothing to do."),
    "unused-secret": Code(_N, "No service uses the secret, and it is not created.", "Nothing to do."),
    "unreadable-mount": Code(
        _W,
        "The mode of a config, a secret or a mounted file keeps the user of its service from reading it.",
        "Let a group read a config or secret, by gid and a mode such as 0440, or all: 0444, or chmod a+r FILE.",
        many=True,
        effect=_CANNOT_RUN,
    ),
    "not-deployed": Code(_N, "Part of the definition is not deployed.", "Nothing to do.", many=True, effect=_CHANGED),
    "derived-image": Code(
        _N,
        "Host content too large for a Secret, or with a file that no pod can mount, goes into an image made from the"
        " service's own.",
        "Nothing to do.",
    ),
    "unbuilt-image": Code(
        _W,
        "Printed objects use an image that only a deploy builds: it carries host content.",
        "Deploy instead, mount less, or use a named volume or an image of your own.",
    ),
    "provided-variables": Code(
        _W,
        "Printed objects use a Secret with the variables of a provider, which only a deploy runs.",
        "Deploy instead, or create the Secret.",
    ),
    "provided-service": Code(
        _N, "A program of your machine gives a service.", "Nothing; a deploy runs it with --allow-providers."
    ),
    # names
    "name-normalized": Code(
        _W, "A name was changed to fit Kubernetes, and the DNS name with it.", "Rename it.", effect=_CHANGED
    ),
    "invalid-name": Code(_E, "A name can't be converted to a Kubernetes name.", "Rename it.", many=True),
    "name-conflict": Code(_E, "Two things would have the same Kubernetes name.", "Rename one of them.", many=True),
    # references
    "undefined-service": Code(_E, "The definition has no service of this name.", "Correct it.", many=True),
    "optional-service": Code(
        _W,
        "A dependency with required: false names a service that the definition does not have, whatever its profiles.",
        "Correct the name, or remove the dependency.",
        many=True,
    ),
    "inactive-service": Code(_E, "A service needs one whose profile is off.", "Turn its profile on.", many=True),
    "undefined-network": Code(
        _E, "In full mode, a service names a network that 'networks' does not declare.", "Declare it.", many=True
    ),
    "undefined-volume": Code(
        _E, "A service mounts a volume that 'volumes' does not declare.", "Declare it.", many=True
    ),
    "undefined-config": Code(_E, "A service uses a config that 'configs' does not declare.", "Declare it.", many=True),
    "undefined-model": Code(_E, "A service uses a model that 'models' does not declare.", "Declare it.", many=True),
    "undefined-secret": Code(_E, "A service uses a secret that 'secrets' does not declare.", "Declare it.", many=True),
    "undefined-port": Code(
        _E, "A route names a port that its service does not have.", "Add it to the service's ports.", many=True
    ),
    "exposed-never-public": Code(
        _E,
        "x-expose names a port of databases and debuggers, which are never public.",
        "Leave it out, or allow it by number with allow_never_public.",
        many=True,
    ),
    "invalid-patch": Code(
        _E,
        "A patch does not fit its object, or changes what identifies the object.",
        "See what was expected, or leave that part out.",
        many=True,
    ),
    "dependency-cycle": Code(_E, "Services wait for each other in a cycle.", "Remove one of the dependencies."),
    "extends-cycle": Code(_E, "Services extend each other in a cycle.", "Remove one of the 'extends'."),
    "include-cycle": Code(_E, "Files include each other in a cycle.", "Remove one of the includes."),
    "pod-conflict": Code(
        _E, "In full mode, services can't share a pod as they ask for.", "Give one of them a pod of its own.", many=True
    ),
    "not-a-job": Code(
        _E, "service_completed_successfully waits for a service that never ends.", "Give it restart: 'no'.", many=True
    ),
    # workloads
    "low-memory-limit": Code(
        _W,
        "A limit of memory is below 6 MiB, with which Docker runs no container; a number without a unit is bytes.",
        "Write a unit, such as 512m.",
    ),
    "text-as-test": Code(
        _W,
        "The test of a health check is a text that begins with CMD, CMD-SHELL or NONE; these are words of a list.",
        "Write a list, or leave the word out.",
    ),
    "unsupported-update-policy": Code(
        _E, "The update policy is not allowed on this kind of workload.", "Choose another."
    ),
    "request-above-limit": Code(_E, "A request is larger than the limit of the same resource.", "Lower it.", many=True),
    "non-numeric-user": Code(
        _W,
        "Kubernetes needs numbers for user and group; only the image knows this name.",
        "Give the number.",
        effect=_CHANGED,
    ),
    "needs-cluster-setting": Code(
        _W, "A service works only on a cluster with this setting.", "Configure the cluster.", _CHANGED, many=True
    ),
    "pod-security-violation": Code(
        _E,
        "With --pod-security restricted, a service asks for what such a namespace refuses.",
        "Let it run as another user than root, without capabilities.",
        many=True,
    ),
    "unknown-user": Code(
        _W,
        "With --pod-security restricted, a service names no user, and whether its image's is root is not known.",
        "Give the user's number with 'user'.",
        effect=_CHANGED,
    ),
    "on-failure-job": Code(
        _W,
        "restart: on-failure makes the service a Job, which ends; a server would not be restarted.",
        "Use 'always' for a server.",
        effect=_CHANGED,
    ),
    "job-with-ports": Code(
        _W,
        "A restart policy makes a service with ports a Job: after its end, nothing answers at its ports.",
        "Use 'always' for a server.",
        effect=_CHANGED,
    ),
    "inferred-job": Code(
        _N,
        "A service without 'restart' is a Job, because another one waits for it to complete.",
        "Nothing to do; restart: 'no' says the same.",
        summary=(
            "{count} service without 'restart' is a Job, as others wait for it to complete: {keys}",
            "{count} services without 'restart' are Jobs, as others wait for them to complete: {keys}",
        ),
    ),
    "no-traffic-diversion": Code(
        _W, "With endpoint_mode dnsrr the traffic-diverting feature does not work.", "Use vip."
    ),
    # volumes
    "duplicate-mount": Code(_E, "Two volumes are mounted at the same path of one service.", "Remove one.", many=True),
    "forbidden-path": Code(
        _E,
        "A host path that must not leave this machine: a system path, a socket, a device.",
        "Use a named volume, or a folder of the project.",
        many=True,
    ),
    "outside-project": Code(
        _E,
        "The definition names a file outside the project, links resolved: its content could be published.",
        "Move it into the project (the git work tree, else the Compose file's folder), or give --allow-outside.",
        many=True,
    ),
    "host-data": Code(
        _W,
        "A host folder holds data: at the path of a program's data, without files but SQLite's, or of another service,"
        " also in a folder within. What is written there is lost, or not seen by the others.",
        "Use a named volume, as the message shows.",
        many=True,
        effect=_LOST,
    ),
    "swarm-template": Code(
        _W,
        "A variable or a host name has a template that only Docker Swarm fills in.",
        "See the message.",
        many=True,
        effect=_CHANGED,
    ),
    "windows-path": Code(
        _E,
        "A path of Windows: a drive, a share, or folders separated by backslashes.",
        "Write a path in the project with '/', or use a named volume.",
        many=True,
    ),
    "windows-line-ends": Code(
        _W,
        "A script has line ends of Windows (CRLF): a container can't run it, and reports 'no such file or directory'.",
        "Save it with LF, and write '*.sh text eol=lf' into .gitattributes.",
        many=True,
    ),
    "not-in-image": Code(
        _W,
        "A built service mounts files from outside its build context: they are neither deployed nor in the image.",
        "Copy them into the image.",
        many=True,
        effect=_LOST,
    ),
    "removed-mount": Code(
        _N,
        "The platform file removes a mount of the Compose file, such as that of the Docker socket.",
        "Check that the service works without it.",
        effect=_LOST,
    ),
    "missing-path": Code(_E, "A host path does not exist.", "Create it, or correct the path.", many=True),
    # network
    "sensitive-port": Code(
        _W, "This port is never made public by 'ports'.", "Use 'endpoints' to give it a route.", _CHANGED, many=True
    ),
    "no-network-isolation": Code(
        _W,
        "Networks keep services apart in Compose; in the cluster every service reaches every other.",
        "Write a NetworkPolicy to isolate them.",
        effect=_LOST,
    ),
    "loopback-port": Code(
        _N,
        "A port is bound to loopback (127.0.0.1, ::1, localhost): it stays private, as in Compose.",
        "Leave the host address out for a URL.",
        many=True,
        summary=(
            "{count} port is bound to loopback, and so has no URL",
            "{count} ports are bound to loopback, and so have no URL",
        ),
        effect=_CHANGED,
    ),
    "non-http-port": Code(
        _W,
        "A port is made public that usually speaks no plain HTTP, and an HTTPS route forwards nothing else to it.",
        "Leave the published port out, as in '22' for '22:22', to keep it private.",
        many=True,
        effect=_CHANGED,
    ),
    "no-domain": Code(_E, "Endpoints are set, but no domain is known.", "Give --domain or set PLATFORM_DOMAIN."),
    "port-without-url": Code(
        _W,
        "A public port gets no URL, as no domain is known.",
        "Give --domain or set PLATFORM_DOMAIN.",
        many=True,
        effect=_CHANGED,
    ),
    "hostname-truncated": Code(
        _W, "A host name was too long for DNS and was shortened.", "Use shorter names.", many=True
    ),
    **CLUSTER_CODES,
}

#: Codes about keys of Compose: the key has the effect.
BY_KEY = frozenset(("unsupported-key", "ignored-key"))
