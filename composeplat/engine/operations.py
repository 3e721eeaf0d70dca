"""The operations on a stack: preview, deploy, destroy, sleep, wake, refresh.

Owns their order: look before acting, act, wait, tidy up.
What is decided on the way is decided elsewhere, by functions of data: :mod:`~composeplat.engine.preflight`,
:mod:`~composeplat.engine.monitor`, :mod:`~composeplat.cluster.conditions`.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from composeplat import talk
from composeplat.blame import Origins
from composeplat.cluster.api import Api, ApiError, kind_path
from composeplat.cluster.conditions import Cause, State, judge
from composeplat.cluster.identity import address_identity
from composeplat.cluster.namespaces import make_namespace
from composeplat.cluster.patience import Patience
from composeplat.cluster.watching import Pulse, Watcher, last_lines, of_environment, port_answers
from composeplat.diagnostics import ComposeplatError, MissingPiece, Report
from composeplat.engine.build_failures import confidential, read_failure
from composeplat.engine.build_history import find_record
from composeplat.engine.builder import BUILDER, builder_variables
from composeplat.engine.events import KEEP, Change, Events
from composeplat.engine.monitor import Listener, Monitor
from composeplat.engine.preflight import (
    CLAIM,
    Present,
    built_images,
    check_present,
    cluster_of,
    is_ours,
    keys_of,
    known_to_state,
    look,
    missing_from_cluster,
    path_of,
    rename_replaced,
    volumes_to_replace,
)
from composeplat.engine.process import Ended, Interrupted, Interrupts
from composeplat.engine.sleeping import (
    Waking,
    can_sleep,
    lay_down,
    not_deployed,
    note_awake,
    pods_left,
    rouse,
    services_of,
    sleepers_in,
    workloads_of,
)
from composeplat.engine.target import Target
from composeplat.engine.twins import (
    ORIGINAL,
    WORKLOADS,
    held_back_in,
    hold_back,
    is_twin,
    original_in,
    replicas_of,
    twins_by_service,
)
from composeplat.engine.words import apart_from, each, image_urn, words_for
from composeplat.engine.workspace import Workspace, broke_off, explain
from composeplat.load.contexts import check_builds, secrets_of_files
from composeplat.plan.desired import ImageBuild, Plan, ServicePlan
from composeplat.toolchain.setup import Toolchain
from composeplat.toolchain.tools import BUILDX

#: From so many objects on, Pulumi's state is written once, at the end: after each step it would be most of the time.
_MOST_CHECKPOINTED = 40
_GONE_WITHIN = 120.0
_PORT_GRACE = 30.0
_ENOUGH = 0.1
_FOR_PODS = "waiting until all pods have ended"
#: So often Pulumi is run where something comes in between that passes by itself.
_MOST_RUNS = 10
_LONGEST_REFUSAL = 60.0
_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    services: tuple[str, ...] = ()
    """None means all."""
    wait: bool = True
    timeout: float = 300.0
    rerun_jobs: bool = False
    refresh: bool = False
    replaced_volumes: tuple[str, ...] = ()
    safe_checkpoints: bool = False
    build: bool | None = None
    """All images (True), none (False), or those that changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that went wrong, in words, with what shows it."""

    service: str
    cause: Cause
    lines: tuple[str, ...] = ()
    source: str = ""
    """Whose lines they are."""


@dataclass(slots=True, kw_only=True)
class Outcome:
    changes: list[Change] = field(default_factory=list)
    counts: Mapping[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Volumes that stay."""
    removed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    urls: tuple[str, ...] = ()
    images: dict[str, str] = field(default_factory=dict)
    """Service -> what its image is known by."""
    services: tuple[str, ...] = ()
    """Those that were put to sleep or woken."""
    developed: tuple[str, ...] = ()
    """Those that are under development, and were left alone."""
    seconds: float = 0.0


@dataclass(slots=True, kw_only=True)
class Operator:
    """One environment, and what can be done with it."""

    plan: Plan
    target: Target
    environment: Mapping[str, str]
    origins: Origins | None = None
    listener: Listener = field(default=lambda _: None)
    say: Callable[[str], None] = field(default=lambda _: None)
    interrupts: Interrupts = field(default_factory=Interrupts)
    pulse: Pulse = field(init=False)
    _space: Workspace | None = None
    _build_lines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The last lines of builds that failed, by service."""

    def __post_init__(self) -> None:
        self.pulse = Pulse(self.target.access, self.plan.namespace, self.say)

    @property
    def space(self) -> Workspace:
        if self._space is None:
            space = Workspace(
                environment_name=self.plan.environment, namespace=self.plan.namespace, target=self.target,
                environment=self.environment, interrupts=self.interrupts,
            )  # fmt: skip
            self._space = space
        return self._space

    def _prepare(self) -> None:
        threading.Thread(target=_load_ahead, args=(self.plan,), daemon=True).start()
        builds = bool(self.plan.images)
        if builds:
            self.space.builder = builder_variables(self.environment, self.target, self.space.home)
        self.space.prepare(builds=builds)

    # preview

    def preview(self, options: Options) -> Outcome:
        started = time.monotonic()
        with self.interrupts:
            self._prepare()
            with self.space.lock("preview"), self.pulse, Api(self.target.access) as api:
                self.plan.chosen(options.services)
                present = self._check(api, options)
                self.space.make_stack()
                self._check_cluster()
                words = ["preview", *self._words(options, present)]
                replaced = volumes_to_replace(self.plan, present, options.replaced_volumes)
                losing = [name for name, has_to_be in replaced.items() if has_to_be]
                notes = [_lost(self.plan, name) for name in losing]
                asleep = services_of(self.plan, sleepers_in(present, self.plan.environment).keys())
                if asleep:
                    notes.append(
                        f"asleep: {', '.join(asleep.values())}; a deploy wakes them, and so does 'platform wake'"
                    )
                live = api.items(kind_path("v1", "Service", self.plan.namespace))
                twins = twins_by_service(present.heads, self.plan.environment)
                self.plan = rename_replaced(
                    hold_back(self.plan, held_back_in(self.space.read_state() or {}, twins)), live, losing
                )
                if self._has_drift(present):
                    words.append("--refresh")
                events, ended = self._run(words, self.plan.chosen(options.services))
        self._stop_if_interrupted()
        if ended.status:
            raise _failed(ended, events)
        return Outcome(changes=events.changing, counts=events.counted(), seconds=time.monotonic() - started,
                       kept=_kept(events), notes=notes, urls=_urls(self.plan, self.target))  # fmt: skip

    def _stop_if_interrupted(self, events: Events | None = None) -> None:
        if self.interrupts.count:
            raise Interrupted("interrupted", self._interrupted_hint(events) if events else "")

    # build

    def build(self, services: Collection[str], *, force: bool) -> Outcome:
        """Build and push images that changed, or all that are asked for, and touch no workload."""
        started = time.monotonic()
        self.plan.chosen(services)
        images = list(self.plan.images_for(services) if services else self.plan.images)
        if not images:
            which = f"service '{next(iter(services))}' has" if services else "no service has"
            raise ComposeplatError(f"{which} nothing to build", "say what with 'build'")
        self._check_builds(images)
        # Nothing of the cluster is registered then: that would be half of the time of a build without a change.
        self.plan = self.plan.images_alone
        chosen = frozenset(image.service for image in images)
        monitor = Monitor(plan=self.plan, listener=self.listener, chosen=chosen, only_images=True)
        with self.interrupts:
            self._prepare()
            with self.space.lock("build"), self.pulse:
                self.space.make_stack()
                self._check_cluster()
                state = self.space.read_state() or {}
                self.space.drop_pending(state)
                urns = sorted(image_urn(self.plan, image) for image in images)
                words = ["up", "--yes", "--skip-preview", "--continue-on-error", "--stack", self.plan.namespace,
                         "--suppress-outputs", *each("--exclude", apart_from(self.plan, urns, state)),
                         *each("--replace", sorted(set(urns) & built_images(state)) if force else ())]  # fmt: skip
                events, ended = self._run(words, chosen, monitor=monitor)
        self._stop_if_interrupted()
        self._note_failures(events, ended, monitor)
        if ended.status and not monitor.causes:
            raise _failed(ended, events)
        failures = [self._failure(name, cause) for name, cause in monitor.causes.items()]
        known = {image.service: events.references.get(image_urn(self.plan, image), image.reference) for image in images}
        return Outcome(changes=events.changing, counts=events.counted(), failures=failures, images=known,
                       seconds=time.monotonic() - started)  # fmt: skip

    # deploy

    def deploy(self, options: Options) -> Outcome:
        started = time.monotonic()
        with self.interrupts:
            self._prepare()
            with self.space.lock("deploy"), self.pulse, Api(self.target.access) as api:
                outcome = self._deploy(api, options)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _deploy(self, api: Api, options: Options) -> Outcome:
        self.plan.chosen(options.services)
        present = self._check(api, options)
        replaced = volumes_to_replace(self.plan, present, options.replaced_volumes)
        self._check_cluster()
        if not present.namespace:
            make_namespace(api, self.plan.namespace)
            self.say(f"made namespace {self.plan.namespace}")
        self._until_gone(api, [key for key in keys_of(self.plan.objects) if _is_ending(present, key)], "of before")
        self.space.make_stack()
        state = self.space.read_state() or {}
        self.space.drop_pending(state)
        if any(replaced.values()):
            self._prove(api, options, present, [name for name, has_to_be in replaced.items() if has_to_be])
        for name, has_to_be in replaced.items():
            if has_to_be:
                self._remove_volume(api, name)
            else:
                self.say(f"volume {name} stays as it is: the file does not change it")
        self._heed_twins(api, present)
        self._clear_the_way(api, present, state)
        chosen = self.plan.chosen(options.services)
        asleep = self._heed_sleepers(api, present, chosen)
        drifted = bool(missing_from_cluster(state, present) or asleep) or any(replaced.values())
        monitor = Monitor(plan=self.plan, listener=self.listener, chosen=chosen)
        watcher = Watcher(self.target.access, self.plan.namespace, self.plan.environment)
        patience = Patience(options.timeout)
        try:
            words = ["up", "--yes", "--skip-preview", "--continue-on-error", *self._words(options, present)]
            if drifted or options.refresh:
                words.append("--refresh")
            gate = self._gate(watcher, monitor, present, patience)
            more = {} if self._is_small(options) else {"PULUMI_SKIP_CHECKPOINTS": "true"}
            events, ended = self._run(
                words, chosen, gate=gate, more=more, monitor=monitor, watcher=watcher, patience=patience
            )
            for key in asleep:
                note_awake(api, self.plan.namespace, key, surely=not ended.status)
            self._stop_if_interrupted(events)
            outcome = Outcome(
                changes=events.changing, counts=events.counted(), urls=_urls(self.plan, self.target), kept=_kept(events)
            )
            self._note_failures(events, ended, monitor)
            if ended.status and not monitor.causes:
                raise _failed(ended, events)
            if not self.interrupts.count and options.wait and not events.failed_builds:
                self._wait(monitor, watcher, patience)
            if not self.interrupts.count and not monitor.causes and options.wait:
                self._ask_ports(api, monitor, watcher, patience)
            outcome.failures = self._failures(api, monitor)
        finally:
            watcher.stop()
        self._stop_if_interrupted(events)
        if not options.services and not outcome.failures:
            outcome.removed = self._prune(api)
        return outcome

    def _heed_twins(self, api: Api, present: Present) -> None:
        """Let the pods of services under development stay away, and tell their twins how many there are to be."""
        twins = twins_by_service(present.heads, self.plan.environment)
        for service in self.plan.services:
            if service.cluster_name in twins:
                path = path_of("Deployment", self.plan.namespace, twins[service.cluster_name])
                api.patch(path, {"metadata": {"annotations": {ORIGINAL: original_in(service).to_text()}}})
                self.say(
                    f"{service.name} is under development: its own pods come back with 'platform down {service.name}'"
                )
        self.plan = hold_back(self.plan, twins)

    def _heed_sleepers(self, api: Api, present: Present, chosen: Collection[str]) -> list[tuple[str, str]]:
        """Let Pulumi see that services sleep: it then gives them their pods back as it changes them, in their order.

        A Job that sleeps is made anew: whether it is suspended is nothing that Pulumi looks at.
        """
        names = {(one.workload_kind, one.cluster_name) for one in self.plan.services if one.name in chosen}
        asleep = [key for key in sleepers_in(present, self.plan.environment) if key in names]
        if asleep:
            self.say(f"waking what sleeps: {', '.join(services_of(self.plan, asleep).values())}")
        jobs = [key for key in asleep if key[0] == "Job"]
        for kind, name in jobs:
            api.delete(path_of(kind, self.plan.namespace, name))
        self._until_gone(api, jobs, "that slept")
        return asleep

    def note_given_back(self, *services: str) -> None:
        """Where the state has no pods for services that have theirs back, read anew how many there are."""
        with self.interrupts:
            self.space.prepare(builds=False)
            with self.space.lock("down"), self.pulse:
                urns = held_back_in(self.space.read_state() or {}, services)
                if not urns:
                    return
                self.space.make_stack()
                self._check_cluster()
                words = ["refresh", "--stack", self.plan.namespace, "--exec-kind", "auto.local", "--yes",
                         "--skip-preview", *each("--target", urns.values())]  # fmt: skip
                events, ended = self._follow(words)
        self._stop_if_interrupted()
        if ended.status:
            raise _failed(ended, events)

    def _prove(self, api: Api, options: Options, present: Present, losing: Collection[str]) -> None:
        """See that Pulumi can go on, before data is deleted: that it can read its state, above all."""
        words = ["preview", *self._words(options, present)]
        whole = self.plan
        self.plan = rename_replaced(whole, api.items(kind_path("v1", "Service", whole.namespace)), losing)
        try:
            events, ended = self._run(words, whole.chosen(options.services))
        finally:
            self.plan = whole
        self._stop_if_interrupted()
        if ended.status:
            raise _failed(ended, events)

    def _interrupted_hint(self, events: Events) -> str:
        done = len([urn for urn in events.done if urn in {change.urn for change in events.changing}])
        noted = "are noted" if self.interrupts.count == 1 else "will be found again"
        return f"{done} changes were made and {noted}; 'platform deploy' goes on from there"

    def _words(self, options: Options, present: Present) -> list[str]:
        return words_for(
            self.plan, self.space.read_state() or {}, present.heads.keys(), services=options.services,
            rerun_jobs=options.rerun_jobs, build=options.build,
        )  # fmt: skip

    def _is_small(self, options: Options) -> bool:
        return options.safe_checkpoints or len(self.plan.objects) <= _MOST_CHECKPOINTED

    # looking first

    def _check(self, api: Api, options: Options) -> Present:
        present = look(api, self.plan.namespace)
        if self.origins is not None:
            report = Report()
            check_present(self.plan, present, self.origins, report, replaced_volumes=options.replaced_volumes)
            if report.errors:
                raise Refused(report)
        if options.build is False:
            self._check_built(self.plan.only(options.services).images)
        else:
            self._check_builds(self.plan.only(options.services).images)
        return present

    def _check_built(self, images: Iterable[ImageBuild]) -> None:
        """See that there are images to run, where none is to be built."""
        built = built_images(self.space.read_state() or {})
        unbuilt = [image.service for image in images if image_urn(self.plan, image) not in built]
        if unbuilt:
            raise ComposeplatError(
                f"the image of service '{unbuilt[0]}' has never been built here", "leave --no-build out once"
            )

    def _check_builds(self, images: Collection[ImageBuild]) -> None:
        """See that builds can begin, and that images have a place to go."""
        for image in images:
            if "/" not in image.reference:
                raise MissingPiece(
                    f"no registry is known that the image of service '{image.service}' could be pushed to",
                    "give --registry or set PLATFORM_REGISTRY; an 'image' that names no registry is Docker's own",
                )
        if self.origins is not None:
            report = Report()
            check_builds({image.service: image.build for image in images if not image.derived}, self.origins, report)
            if report.errors:
                raise Refused(report)

    def _check_cluster(self) -> None:
        """A state of another cluster must not be used on this one: what was there would be looked for here."""
        known, address = cluster_of(self.space.read_state() or {}), address_identity(self.target.access)
        if known == address:
            # It was deployed by someone who could not tell more, and goes by that name from then on.
            self.space.cluster = known
        if known and known != self.space.cluster:
            if self.space.cluster == address:
                raise ComposeplatError(
                    f"it can't be told whether the state of environment '{self.plan.environment}' in namespace"
                    f" '{self.plan.namespace}' is of this cluster: you may not read its namespace kube-system",
                    "let whoever deploys read that one object: kubectl create clusterrole know-the-cluster --verb=get"
                    " --resource=namespaces --resource-name=kube-system, and bind it",
                )
            raise ComposeplatError(
                f"the state of environment '{self.plan.environment}' in namespace '{self.plan.namespace}' is of another"
                " cluster than this one, and both would share it",
                "give another --name or --namespace, or a state of its own (PULUMI_BACKEND_URL); if that cluster is"
                f" gone for good: pulumi stack rm --force --stack {self.plan.namespace}",
            )

    def _has_drift(self, present: Present) -> bool:
        return bool(missing_from_cluster(self.space.read_state() or {}, present))

    def _clear_the_way(self, api: Api, present: Present, state: Mapping[str, Any]) -> None:
        """Remove what an interrupted run left that can't be taken up: made by another plan, and not to be changed."""
        known = known_to_state(state)
        removed = []
        for desired in self.plan.objects:
            key = (desired.kind, desired.name)
            if key in known or desired.kind == CLAIM or key not in present.heads:
                continue
            if desired.kind in ("Job", "Service", "StatefulSet") and not _fits(api, desired.manifest):
                api.delete(path_of(desired.kind, self.plan.namespace, desired.name))
                removed.append(key)
        self._until_gone(api, removed, "of an interrupted deploy")

    def _remove_volume(self, api: Api, name: str) -> None:
        """Delete a volume and what uses it, so that both are made anew."""
        volume = next(one for one in self.plan.volumes if one.name == name)
        users = [(service.workload_kind, service.cluster_name) for service in _users(self.plan, name)]
        for kind, user in users:
            api.delete(path_of(kind, self.plan.namespace, user))
        self.say(f"deleting volume {name} and what it holds")
        api.delete(path_of(CLAIM, self.plan.namespace, volume.cluster_name))
        self._until_gone(api, [*users, (CLAIM, volume.cluster_name)], "that is replaced")

    def _until_gone(self, api: Api, keys: list[tuple[str, str]], which: str) -> None:
        deadline = time.monotonic() + _GONE_WITHIN
        for kind, name in keys:
            with talk.step(f"waiting until {kind} '{name}' {which} is gone", passing=True):
                while api.find(path_of(kind, self.plan.namespace, name)) is not None:
                    self._stop_if_interrupted()
                    if time.monotonic() > deadline:
                        raise ComposeplatError(
                            f"{kind} '{name}' {which} is not gone after {_GONE_WITHIN:.0f} s",
                            f"see what holds it: kubectl -n {self.plan.namespace} describe {kind.lower()} {name}",
                        )
                    time.sleep(_ENOUGH)

    # acting

    def _gate(self, watcher: Watcher, monitor: Monitor, present: Present, patience: Patience) -> Any:
        from composeplat.components.gate import Gate  # noqa: PLC0415 -- loads Pulumi

        return Gate(
            plan=self.plan, access=self.target.access, watcher=watcher, patience=patience,
            existing=dict.fromkeys(present.heads, True), cancelled=self.interrupts.cancelled,
            told=lambda service, words: monitor.tell(service, "waiting", words), failed=monitor.fail,
        )  # fmt: skip

    def _run(
        self,
        words: list[str],
        building: Collection[str],
        *,
        gate: Any = None,
        more: Mapping[str, str] = _NOTHING,
        monitor: Monitor | None = None,
        watcher: Watcher | None = None,
        patience: Patience | None = None,
    ) -> tuple[Events, Ended]:
        """Run the program under Pulumi; of its images, those named are what all else waits for."""
        from composeplat.components.program import declare  # noqa: PLC0415 -- loads Pulumi
        from composeplat.engine.host import serve  # noqa: PLC0415 -- the same

        def program() -> None:
            declare(self.plan, cluster=self.space.cluster, gate=gate, builder=self.space.builder.get(BUILDER, ""),
                    building=building)  # fmt: skip

        def take(urn: str, events: Events) -> None:
            if monitor:
                monitor.take(urn, events, watcher.rounds if watcher else 0)
            change = events.changes.get(urn) if urn in events.done else None
            if patience and change is not None and change.kind == "Image":
                patience.renew()

        def tick() -> None:
            if monitor and watcher:
                monitor.look(watcher.latest, watcher.rounds)

        with serve(program) as address:
            client = [f"--client={address}", "--exec-kind", "auto.inline"]
            return self._follow([*words, *client], take, tick, more)

    def _follow(
        self,
        words: list[str],
        take: Callable[[str, Events], None] = lambda _urn, _events: None,
        tick: Callable[[], None] = lambda: None,
        more: Mapping[str, str] = _NOTHING,
    ) -> tuple[Events, Ended]:
        """Run an operation, and go on with it where what came in between has passed."""
        events = Events()

        def on_event(event: dict[str, Any]) -> None:
            urn = events.take(event)
            if urn:
                take(urn, events)

        def on_tick() -> None:
            self.pulse.check()
            tick()

        for _ in range(_MOST_RUNS):
            before, events = events, Events()
            ended = self.space.follow(words, on_event, on_tick, more)
            _add_done(events, before)
            if not ended.status or self.interrupts.count or not self._has_passed(events, ended):
                break
        return events, ended

    def _has_passed(self, events: Events, ended: Ended) -> bool:
        """Say whether what was in the way is so no more: a dead process's lock, or a cluster that broke off."""
        if "is currently locked" in ended.output:
            if self.space.unlock(ended.output):
                self.say("broke the lock of a process that is gone")
                return True
            return False
        if not broke_off("\n".join([ended.output, *_texts(events)])):
            return False
        self.say("the cluster broke off; going on once it answers")
        self.pulse.doubt()
        while self.pulse.silence and not self.interrupts.count:
            self.pulse.check()
            time.sleep(_ENOUGH)
        return True

    # after it

    def _note_failures(self, events: Events, ended: Ended, monitor: Monitor) -> None:
        """What Pulumi or the API server refused; what a hook said of a dependency is known already."""
        names = {service.cluster_name: service.name for service in self.plan.services}
        for urn, texts in events.messages.items():
            text = next((one for one in texts if not _is_noise(one)), "")
            if not urn or not text or not ended.status:
                continue
            tail = urn.rpartition("/")[2]
            change = events.changes.get(urn)
            what = f"{change.kind} '{change.name}'" if change else urn.rpartition("::")[2]
            name = names.get(tail, tail)
            held = _held_back(text)
            image = next((one for one in self.plan.images if urn == image_urn(self.plan, one)), None)
            if held:
                cause = Cause(code="dependency", message=held)
            elif image is not None:
                cause = self._cause_of_build(image, text)
            else:
                cause = Cause(code="refused", message=f"{what} could not be made: {_sentence(text)}")
            monitor.fail(name, cause)
        if ended.status:
            self._note_dependents(monitor)

    def _note_dependents(self, monitor: Monitor) -> None:
        """Pulumi passes over what depends on one that failed, without a word."""
        while held := [
            edge
            for edge in self.plan.edges
            if edge.dependency in monitor.causes
            and edge.service in monitor.chosen - monitor.causes.keys() - monitor.applied.keys()
        ]:
            for edge in held:
                message = f"waits for {edge.dependency}, which failed"
                monitor.fail(edge.service, Cause(code="dependency", message=message))

    def _cause_of_build(self, image: ImageBuild, text: str) -> Cause:
        """Say why a build failed, and keep its last lines."""
        builder = self.space.builder.get(BUILDER, "")
        buildx = Toolchain(self.environment).find(BUILDX)
        variables = self.space.runner.variables
        record = find_record(buildx.path, builder, variables, text, image.build.context) if buildx else None
        hidden = confidential(image.build, secrets_of_files(image.build))
        failure = read_failure(text, record, hidden=hidden, builder=builder)
        self._build_lines[image.service] = failure.lines
        blame = ("image",) if image.derived else failure.blame
        return Cause(code="build", message=failure.message, hint=failure.hint, blame=blame)

    def _wait(self, monitor: Monitor, watcher: Watcher, patience: Patience) -> None:
        """Wait until every service is as it should be, or is known not to come to it."""
        for name in monitor.chosen:
            monitor.applied.setdefault(name, watcher.rounds)
        while not self.interrupts.count:
            snapshot, rounds = watcher.latest, watcher.rounds
            monitor.look(snapshot, rounds)
            if monitor.is_over(snapshot, rounds):
                return
            if patience.is_over:
                for name, standing in monitor.unready(snapshot).items():
                    if standing.state is not State.STARTED or not self._is_job(name):
                        words = f"is not ready after {patience.seconds:.0f} s: {standing.words}"
                        monitor.fail(name, Cause(code="timeout", message=words, hint="give it longer with --timeout"))
                return
            self.pulse.check()
            refused_for = time.monotonic() - watcher.unreachable_since
            if watcher.unreachable and not self.pulse.silence and refused_for > _LONGEST_REFUSAL:
                raise MissingPiece(watcher.unreachable, "what was deployed is noted; run 'platform deploy' again")
            time.sleep(_ENOUGH)

    def _is_job(self, name: str) -> bool:
        return any(s.name == name and s.workload_kind == "Job" for s in self.plan.services)

    def _ask_ports(self, api: Api, monitor: Monitor, watcher: Watcher, patience: Patience) -> None:
        """See that something listens where endpoints lead: without a health check nobody else would."""
        until = patience.at_most(_PORT_GRACE)
        for service, endpoint, port in self._led_to(monitor.chosen):
            while not self.interrupts.count:
                snapshot = watcher.latest
                pods = judge(service.workload_kind, service.cluster_name, snapshot).pods if snapshot else ()
                if not pods or port_answers(api, self.plan.namespace, pods[0], port) is not False:
                    break
                monitor.tell(service.name, "waiting", f"nothing answers on port {port} yet")
                if time.monotonic() > until:
                    monitor.fail(service.name, Cause(
                        code="wrong-port", blame=("ports",), logs=True, pod=pods[0], container=service.cluster_name,
                        message=f"nothing listens on port {port}, where endpoint '{endpoint}' leads",
                        hint="name the port that the program listens on, on all its addresses",
                    ))  # fmt: skip
                    break
                time.sleep(0.5)
            else:
                return

    def _led_to(self, chosen: frozenset[str]) -> Iterable[tuple[ServicePlan, str, int]]:
        services = {service.name: service for service in self.plan.services}
        for endpoint in self.plan.endpoints:
            for name, number in endpoint.routes:
                service = services[name]
                if name in chosen and not service.has_health_check:
                    yield service, endpoint.name, _container_port(service, number)

    def _failures(self, api: Api, monitor: Monitor) -> list[Failure]:
        failures = []
        for name, cause in monitor.causes.items():
            lines: list[str] = []
            if cause.logs and cause.pod:
                lines = last_lines(api, self.plan.namespace, cause.pod, cause.container, previous=cause.previous)
            failures.append(
                replace(self._failure(name, cause), lines=tuple(lines)) if lines else self._failure(name, cause)
            )
        # First what failed itself, then what only waited for it.
        return sorted(failures, key=lambda failure: failure.cause.code == "dependency")

    def _failure(self, name: str, cause: Cause) -> Failure:
        lines = self._build_lines.get(name, ()) if cause.code == "build" else ()
        return Failure(service=name, cause=cause, lines=lines, source="the build" if lines else cause.pod)

    def _prune(self, api: Api) -> list[str]:
        """Remove what carries our labels and is no part of the plan: leavings of runs that were cut off."""
        wanted = set(keys_of(self.plan.objects))
        present = look(api, self.plan.namespace)
        removed = []
        for kind, name in present.ours(self.plan.environment):
            head = present.heads[kind, name]
            is_wanted = kind == CLAIM or (kind, name) in wanted or is_twin(head)
            if not is_wanted and "deletionTimestamp" not in head["metadata"]:
                api.delete(path_of(kind, self.plan.namespace, name))
                removed.append(f"{kind}/{name}")
        return removed

    # destroy

    def destroy(self, *, volumes: bool, wait: bool = True) -> Outcome:
        started = time.monotonic()
        with self.interrupts:
            self.space.prepare(builds=False)
            with self.space.lock("destroy"), self.pulse, Api(self.target.access) as api:
                outcome = self._destroy(api, volumes=volumes, wait=wait)
        outcome.seconds = time.monotonic() - started
        return outcome

    def _destroy(self, api: Api, *, volumes: bool, wait: bool) -> Outcome:
        events = Events()
        state = self.space.read_state()
        if state is not None and state.get("resources"):
            self.space.make_stack()
            self._check_cluster()
            self.space.drop_pending(state)
            events = self._forget_all(state)
            if self.interrupts.count:
                raise Interrupted("interrupted", "what is left goes with the next 'platform destroy'")
        present = look(api, self.plan.namespace)
        outcome = Outcome(changes=events.changing, counts=events.counted())
        ours = present.ours(self.plan.environment)
        for (kind, name), head in ours.items():
            if kind == CLAIM and not volumes:
                outcome.kept.append(_with_size(name, present))
                continue
            outcome.removed.append(f"{kind}/{name}")
            if "deletionTimestamp" not in head["metadata"]:
                api.delete(path_of(kind, self.plan.namespace, name))
        if wait:
            gone = [key for key in ours if volumes or key[0] != CLAIM]
            self._until_gone(api, gone, "that is destroyed")
            self._until_no_pods(api)
        return outcome

    def _forget_all(self, state: Mapping[str, Any]) -> Events:
        def take(urn: str, events: Events) -> None:
            change = events.changes.get(urn) if urn in events.done else None
            if change is not None and not change.kept and change.kind != "Image":
                self.say(f"deleted {change.kind}/{change.name}")

        words = ["destroy", "--yes", "--skip-preview", "--stack", self.plan.namespace, "--parallel", "64",
                 "--exec-kind", "auto.local", "--continue-on-error"]  # fmt: skip
        small = len(state.get("resources") or []) <= 2 * _MOST_CHECKPOINTED
        events, ended = self._follow(words, take, more={} if small else {"PULUMI_SKIP_CHECKPOINTS": "true"})
        if ended.status and not self.interrupts.count:
            raise _failed(ended, events)
        return events

    def _until_no_pods(self, api: Api) -> None:
        path = kind_path("v1", "Pod", self.plan.namespace) + of_environment(self.plan.environment)
        deadline = time.monotonic() + _GONE_WITHIN
        with talk.step(_FOR_PODS, passing=True):
            while time.monotonic() < deadline and not self.interrupts.count:
                if not any(is_ours(pod, self.plan.environment) for pod in api.heads(path)):
                    return
                time.sleep(_ENOUGH)
        self._stop_if_interrupted()

    # sleep and wake

    def sleep(self, *, wait: bool, timeout: float) -> Outcome:
        """Take all pods away, but for those of services under development, and remember how many there were."""
        started = time.monotonic()
        with self.interrupts, self.space.lock("sleep"), self.pulse, Api(self.target.access) as api:
            plan, present = self.plan, look(api, self.plan.namespace)
            twins = twins_by_service(present.heads, plan.environment)
            workloads = workloads_of(api, plan.namespace, plan.environment) if present.namespace else {}
            if not workloads:
                raise not_deployed(plan)
            going = [key for key, one in workloads.items() if key[1] not in twins and can_sleep(one)]
            for key in going:
                self._stop_if_interrupted()
                lay_down(api, plan.namespace, key, replicas_of(workloads[key]))
            if wait:
                self._until_asleep(api, twins, timeout)
        return Outcome(services=_named(plan, going), developed=_developed(plan, twins),
                       seconds=time.monotonic() - started)  # fmt: skip

    def _until_asleep(self, api: Api, twins: Collection[str], timeout: float) -> None:
        patience = Patience(timeout)
        with talk.step(_FOR_PODS, passing=True):
            while left := pods_left(api, self.plan.namespace, self.plan.environment, twins):
                self._stop_if_interrupted()
                self.pulse.check()
                if patience.is_over:
                    raise ComposeplatError(
                        f"{left} pods have not ended after {timeout:.0f} s", "give them longer with --timeout"
                    )
                time.sleep(_ENOUGH)

    def wake(self, *, in_order: bool, wait: bool, timeout: float) -> Outcome:
        """Give what sleeps its pods back: all at once, or in the order of ``depends_on``."""
        started = time.monotonic()
        with self.interrupts, self.space.lock("wake"), self.pulse, Api(self.target.access) as api:
            present = look(api, self.plan.namespace)
            if not any(kind in WORKLOADS for kind, _ in present.ours(self.plan.environment)):
                raise not_deployed(self.plan)
            twins = twins_by_service(present.heads, self.plan.environment)
            sleepers = sleepers_in(present, self.plan.environment)
            asleep = {key: count for key, count in sleepers.items() if key[1] not in twins}
            patience = Patience(timeout)
            watcher = Watcher(self.target.access, self.plan.namespace, self.plan.environment)
            try:
                failures = self._wake(api, asleep, watcher, patience, in_order=in_order, wait=wait)
            finally:
                watcher.stop()
            self._stop_if_interrupted()
        names = [name for _, name in asleep]
        if names:
            # What was refreshed while it slept would else be a change.
            self.note_given_back(*names)
        return Outcome(services=_named(self.plan, asleep), developed=_developed(self.plan, twins), failures=failures,
                       seconds=time.monotonic() - started)  # fmt: skip

    def _wake(
        self, api: Api, asleep: Mapping[tuple[str, str], int], watcher: Watcher, patience: Patience, *,
        in_order: bool, wait: bool,
    ) -> list[Failure]:  # fmt: skip
        planned = {(one.workload_kind, one.cluster_name): one.name for one in self.plan.services}
        for key in asleep.keys() - planned.keys():
            rouse(api, self.plan.namespace, key, asleep[key])
        known = {planned[key]: (key, count) for key, count in asleep.items() if key in planned}
        monitor = Monitor(plan=self.plan, listener=self.listener, chosen=frozenset(known))

        def check() -> None:
            self._stop_if_interrupted()
            self.pulse.check()

        waking = Waking(plan=self.plan, api=api, monitor=monitor, watcher=watcher, patience=patience, check=check,
                        asleep=known)  # fmt: skip
        waking.run(in_order=in_order)
        if wait and monitor.chosen:
            self._wait(monitor, watcher, patience)
        return self._failures(api, monitor)

    # refresh

    def refresh(self, *, preview_only: bool) -> Outcome:
        """Read the cluster into the state; the outcome has what was found to be otherwise."""
        started = time.monotonic()
        with self.interrupts:
            self.space.prepare(builds=False)
            with self.space.lock("refresh"), self.pulse:
                state = self.space.read_state()
                if not state or not state.get("resources"):
                    raise ComposeplatError(
                        f"environment '{self.plan.environment}' is not deployed in namespace '{self.plan.namespace}'",
                        "platform deploy",
                    )
                self.space.make_stack()
                self.space.drop_pending(state)
                self._check_cluster()
                words = ["refresh", "--stack", self.plan.namespace, "--exec-kind", "auto.local"]
                words += ["--preview-only"] if preview_only else ["--yes", "--skip-preview"]
                events, ended = self._follow(words)
        self._stop_if_interrupted()
        if ended.status:
            raise _failed(ended, events)
        return Outcome(changes=events.drifted, counts=events.counted(), seconds=time.monotonic() - started)


class Refused(ComposeplatError):
    """Something in the cluster stands in the way; the report says what."""

    def __init__(self, report: Report) -> None:
        super().__init__("nothing was changed")
        self.report = report


def _load_ahead(plan: Plan) -> None:
    """Import what the program will use, while the cluster and the command line are waited for."""
    from composeplat.components import program  # noqa: F401, PLC0415 -- loads Pulumi
    from composeplat.components.kinds import load  # noqa: PLC0415 -- the same

    load({(str(desired.manifest["apiVersion"]), desired.kind) for desired in plan.objects})


def _texts(events: Events) -> list[str]:
    return [text for texts in events.messages.values() for text in texts]


def _add_done(events: Events, before: Events) -> None:
    """Count what the run before did as well: this one finds it done."""
    for urn, change in before.changes.items():
        known = events.changes.get(urn)
        if urn in before.done and change.operation != KEEP and (known is None or known.operation == KEEP):
            events.changes[urn] = change
            events.done.add(urn)


def _failed(ended: Ended, events: Events) -> ComposeplatError:
    texts = _texts(events)
    return explain("\n".join(texts) if texts and "is currently locked" not in ended.output else ended.output)


def _is_noise(text: str) -> bool:
    return text.startswith(("update failed", "preview failed"))


def _held_back(text: str) -> str:
    """A hook's own words, out of Pulumi's around them."""
    for line in text.splitlines():
        if " waits for " in line and ", which " in line:
            return line[line.find("waits for ") :].strip()
    return ""


def _sentence(text: str) -> str:
    flat = " ".join(text.split())
    for noise in ("1 error occurred: * ", "Server-Side Apply field conflict detected. "):
        flat = flat.replace(noise, "")
    return flat


def _urls(plan: Plan, target: Target) -> tuple[str, ...]:
    return tuple(dict.fromkeys(target.reached_at(url) for endpoint in plan.endpoints for url in endpoint.urls))


def _kept(events: Events) -> list[str]:
    return [change.name for change in events.changing if change.kept]


def _users(plan: Plan, volume: str) -> list[ServicePlan]:
    """The services that mount a volume."""
    claims = {f"claim/{one.cluster_name}" for one in plan.volumes if one.name == volume}
    return [one for one in plan.services if any(claims & set(desired.needs) for desired in one.objects)]


def _named(plan: Plan, keys: Collection[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(services_of(plan, keys).values())


def _developed(plan: Plan, twins: Collection[str]) -> tuple[str, ...]:
    return tuple(one.name for one in plan.services if one.cluster_name in twins)


def _lost(plan: Plan, volume: str) -> str:
    users = ", ".join(one.name for one in _users(plan, volume))
    return f"volume {volume} is made anew and all it holds deleted; {users or 'no service'} is made anew with it"


def _with_size(name: str, present: Present) -> str:
    claim = present.claims.get(name, {})
    size = claim.get("spec", {}).get("resources", {}).get("requests", {}).get("storage", "")
    return f"{name} ({size})" if size else name


def _is_ending(present: Present, key: tuple[str, str]) -> bool:
    return key in present.heads and "deletionTimestamp" in present.heads[key]["metadata"]


def _fits(api: Api, manifest: dict[str, Any]) -> bool:
    """Say whether an object that is there can be made what is wanted."""
    try:
        api.apply(_plain(manifest), dry_run=True)
    except ApiError as error:
        return error.status not in (http.client.UNPROCESSABLE_ENTITY, http.client.BAD_REQUEST)
    return True


def _plain(value: Any) -> Any:
    """A manifest as text alone: an image that is still to be built stands under the name it will have."""
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
        case str() | int() | float() | bool() | None:
            return value
        case _:
            return str(value)


def _container_port(service: ServicePlan, number: int) -> int:
    for desired in service.objects:
        if desired.kind == "Service":
            for port in desired.manifest["spec"].get("ports") or []:
                if port["port"] == number:
                    return int(port["targetPort"])
    return number
