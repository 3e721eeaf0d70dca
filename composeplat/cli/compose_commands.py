"""Commands of ``docker compose`` and of other tools that ``platform`` does not have, and what to type instead.

Owns a row for each of them; the page for people who come from Compose is made from the first table too.
Must not know the commands here: a test checks that each one that is named exists.
"""

from __future__ import annotations

#: Command of docker compose -> the command here, and what differs.
INSTEAD: dict[str, tuple[str, str]] = {
    "alpha": ("platform --help", "lists the commands; those below 'docker compose alpha' are experiments of Docker's"),
    "attach": ("platform logs -f SERVICE", "shows its output; platform exec SERVICE sh opens a shell"),
    "bridge": ("platform render", "prints the Kubernetes objects"),
    "commit": ("platform build", "an image comes from a Dockerfile"),
    "convert": ("platform config", "prints the resolved definition; platform render prints the Kubernetes objects"),
    "create": ("platform deploy --no-wait", "creates everything, and does not wait until it is ready"),
    "export": ("platform cp SERVICE:PATH DIR", "copies files of a container"),
    "kill": ("platform restart SERVICE", "replaces its pods; platform sleep ends those of all services"),
    "ls": ("platform status", "shows one environment; kubectl get all -A -l app.kubernetes.io/managed-by=composeplat"),
    "pause": ("platform sleep", "scales the environment to zero"),
    "publish": ("platform build", "pushes the images"),
    "pull": ("platform deploy", "the cluster pulls images; build.pull renews the base of a built one"),
    "push": ("platform build", "builds and pushes"),
    "rm": ("platform destroy", "deletes the environment; volumes stay"),
    "scale": ("platform deploy", "set deploy.replicas in the Compose file before it"),
    "start": ("platform wake", "wakes the environment"),
    "stats": ("platform top", "shows the use of CPU and memory"),
    "stop": ("platform sleep", "scales the environment to zero"),
    "unpause": ("platform wake", "wakes the environment"),
    "version": ("platform --version", "prints the version"),
    "volumes": ("platform config --volumes", "prints their names; kubectl get pvc shows them in the cluster"),
    "wait": ("platform deploy", "ends when all services are ready, and all jobs that others wait for have completed"),
}

#: Command of kubectl, Helm, Pulumi or Terraform -> the command here, and what it does.
OF_OTHER_TOOLS: dict[str, tuple[str, str]] = {
    "apply": ("platform deploy", "applies the Compose file"),
    "cancel": ("platform state unlock", "removes a lock that was left; Ctrl-C cancels a deploy that runs"),
    "compose": ("platform --help", "lists the commands, which are written without 'compose'"),
    "delete": ("platform destroy", "deletes the environment; volumes stay"),
    "describe": ("platform status", "shows each service and its problem; platform events shows what happened"),
    "diff": ("platform preview", "shows what a deploy would change"),
    "get": ("platform status", "shows each service; platform render prints the Kubernetes objects"),
    "install": ("platform deploy", "deploys the Compose file"),
    "plan": ("platform preview", "shows what a deploy would change"),
    "port-forward": ("platform up SERVICE", "forwards the ports of a service while it is developed"),
    "rollout": ("platform restart", "replaces pods; platform rollback deploys an earlier revision"),
    "stack": ("platform state", "shows and moves the state; each environment has a stack of its own"),
    "template": ("platform render", "prints the Kubernetes objects"),
    "undeploy": ("platform destroy", "deletes the environment; volumes stay"),
    "uninstall": ("platform destroy", "deletes the environment; volumes stay"),
    "upgrade": ("platform deploy", "deploys the Compose file, and changes what has changed in it"),
}

#: The hint where ``up`` or ``down`` finds nothing to develop: for docker compose they are about all services.
UNDEVELOPED = {
    "up": "add one, such as '.:/app' under 'volumes'; platform deploy runs the services as they are",
    "down": "platform destroy deletes the environment",
}

#: Options of docker compose that a command here does not have -> the command to type.
_DEPLOY = "platform deploy, which ends when all services are ready"
_GRACE = "platform destroy; stop_grace_period in the Compose file says how long containers have"
_RESTARTED = "platform restart; stop_grace_period in the Compose file says how long containers have"
_ALONE = "platform deploy SERVICE, which leaves dependencies as they are if they have not changed"
_PULLED = "platform deploy --full, with pull_policy in the Compose file"
_UNASKED = "platform deploy --domain DOMAIN, which asks nothing then"
_SCALED = "platform deploy, with deploy.replicas set in the Compose file"
_DIGESTS = "platform images --json, which has the digest of each image"
_PODS = "platform status --json, which has the names of the pods"
_STATES = "platform status --json, which has the state of each service"
OPTIONS: dict[tuple[str, str], str] = {
    ("up", "-d"): _DEPLOY,
    ("up", "--detach"): _DEPLOY,
    ("up", "--build"): "platform deploy --build",
    ("up", "--wait"): _DEPLOY,
    ("up", "--no-deps"): _ALONE,
    ("up", "--pull"): _PULLED,
    ("up", "-y"): _UNASKED,
    ("up", "--yes"): _UNASKED,
    ("up", "--force-recreate"): "platform restart, after platform deploy",
    ("up", "--remove-orphans"): "platform deploy, which deletes what has left the Compose file",
    ("down", "-v"): "platform destroy --volumes",
    ("down", "-t"): _GRACE,
    ("down", "--timeout"): _GRACE,
    ("down", "--remove-orphans"): "platform destroy",
    ("down", "--rmi"): "platform destroy; images stay in their registry",
    ("destroy", "-v"): "platform destroy --volumes",
    ("destroy", "-t"): _GRACE,
    ("destroy", "--timeout"): _GRACE,
    ("destroy", "--remove-orphans"): "platform destroy",
    ("destroy", "--rmi"): "platform destroy; images stay in their registry",
    ("deploy", "-d"): "platform deploy, which ends when all services are ready; --no-wait does not wait",
    ("deploy", "--detach"): "platform deploy, which ends when all services are ready; --no-wait does not wait",
    ("deploy", "--force-recreate"): "platform restart, after platform deploy",
    ("deploy", "--remove-orphans"): "platform deploy, which deletes what has left the Compose file",
    ("deploy", "--no-deps"): _ALONE,
    ("deploy", "--pull"): _PULLED,
    ("deploy", "-y"): _UNASKED,
    ("deploy", "--yes"): _UNASKED,
    ("deploy", "--watch"): "platform watch, in full mode",
    ("up", "--scale"): _SCALED,
    ("deploy", "--scale"): _SCALED,
    ("deploy", "-p"): "platform deploy --name NAME",
    ("build", "--build-arg"): "platform build, with the argument below build.args in the Compose file",
    ("build", "--no-cache"): "platform build --force, with build.no_cache: true in the Compose file",
    ("build", "--pull"): "platform build --force, with build.pull: true in the Compose file",
    ("build", "--push"): "platform build, which pushes",
    ("config", "--environment"): "platform config --variables",
    ("config", "-o"): "platform config > FILE",
    ("config", "--output"): "platform config > FILE",
    ("config", "--hash"): "platform preview, which shows the services that have changed",
    ("exec", "-e"): "platform exec SERVICE env NAME=VALUE COMMAND",
    ("exec", "--env"): "platform exec SERVICE env NAME=VALUE COMMAND",
    ("exec", "-u"): "platform run --user USER SERVICE COMMAND, in a pod of its own",
    ("exec", "--user"): "platform run --user USER SERVICE COMMAND, in a pod of its own",
    ("exec", "-w"): "platform exec SERVICE sh -c 'cd DIR && COMMAND'",
    ("exec", "--workdir"): "platform exec SERVICE sh -c 'cd DIR && COMMAND'",
    ("images", "--format"): "platform images --json",
    ("images", "-q"): _DIGESTS,
    ("images", "--quiet"): _DIGESTS,
    ("logs", "--no-color"): "platform logs, with NO_COLOR=1 in the environment",
    ("logs", "--no-log-prefix"): "platform logs --no-prefix",
    ("ps", "-a"): "platform status, which shows all services",
    ("ps", "--all"): "platform status, which shows all services",
    ("ps", "-q"): _PODS,
    ("ps", "--quiet"): _PODS,
    ("ps", "--filter"): _STATES,
    ("ps", "--status"): _STATES,
    ("ps", "--format"): "platform status --json",
    ("ps", "--services"): "platform config --services",
    ("restart", "-t"): _RESTARTED,
    ("restart", "--no-deps"): "platform restart SERVICE, which restarts that service alone",
}

#: Commands that docker compose has by another name.
_THEIRS = {"deploy": "up", "destroy": "down"}

#: Options that are written before the command for docker compose or kubectl -> how they are written after it.
_BEFORE: dict[str, str] = {
    "-f": "-f FILE",
    "--file": "--file FILE",
    "-p": "--name NAME",
    "--project-name": "--name NAME",
    "--profile": "--full --profile NAME",
    "--env-file": "--env-file FILE",
    "-n": "-n NAMESPACE",
    "--namespace": "--namespace NAMESPACE",
    "--context": "--context NAME",
    "--kubeconfig": "--kubeconfig FILE",
    "--local": "--local",
}


def message_for_option(command: str, option: str) -> str | None:
    """The message about an option of docker compose that a command does not have; none for another option."""
    instead = OPTIONS.get((command, option))
    if instead is None:
        return None
    theirs = _THEIRS.get(command, command)
    return f"No such option: {option}\n  hint: for 'docker compose {theirs} {option}' type {instead}"


def message_for_option_before(option: str) -> str | None:
    """The message about an option that comes after the command; none for another option."""
    after = _BEFORE.get(option)
    if after is None:
        return None
    return f"No such option: {option}\n  hint: options come after the command: platform COMMAND {after}"


def message_for(command: str) -> str | None:
    """The message about a command of docker compose or another tool; none for another name."""
    row = INSTEAD.get(command) or OF_OTHER_TOOLS.get(command)
    if row is None:
        return None
    return f"there is no 'platform {command}'\n  hint: {row[0]}: {row[1]}"
