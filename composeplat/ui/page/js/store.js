// Owns the latest documents, and which environment they are of. A change has the page drawn again, once for all that
// arrive within a moment. It knows neither where documents come from nor how they are shown.
"use strict";

const store = (() => {
  const MIN_REDRAW_INTERVAL_MS = 100;
  // Drawing takes at most this part of the time, so that a slow machine stays usable.
  const MAX_DRAWING_SHARE = 0.1;
  const MAX_REDRAW_INTERVAL_MS = 2000;
  // Ages are shown in seconds only for an operation that runs.
  const SECONDS_INTERVAL_MS = 1000;
  const AGES_INTERVAL_MS = 10000;
  const documents = {};
  const session = {
    page: null,
    exported: null, // all documents of an exported page
    environments: null, // of a cluster
    connection: "connecting", // connecting, live, reconnecting, paused, exported
    needsCode: false,
    wrongCode: false,
    failure: "",
  };
  let draw = () => {};
  let timer = 0;
  let pause = MIN_REDRAW_INTERVAL_MS;

  function onChange(callback) {
    draw = callback;
    setInterval(changed, AGES_INTERVAL_MS);
    setInterval(() => documents.operation?.state === "running" && changed(), SECONDS_INTERVAL_MS);
  }

  // The timer is kept until the frame, which a hidden tab does not have: it would draw once for each change of hours.
  function changed() {
    if (timer) return;
    timer = setTimeout(() => {
      requestAnimationFrame(() => {
        timer = 0;
        const started = performance.now();
        draw();
        setTimeout(() => choosePause(performance.now() - started));
      });
    }, pause);
  }

  // By the time that the last drawing took, with that of the browser's own part.
  function choosePause(drawingMs) {
    pause = Math.min(Math.max(MIN_REDRAW_INTERVAL_MS, drawingMs / MAX_DRAWING_SHARE), MAX_REDRAW_INTERVAL_MS);
  }

  function set(topic, data) {
    documents[topic] = data;
    changed();
  }

  function clear() {
    for (const topic of Object.keys(documents)) delete documents[topic];
  }

  function setSession(values) {
    Object.assign(session, values);
    changed();
  }

  // Ages on an exported page are those of the moment when it was written.
  function now() {
    const written = Date.parse(session.page?.written ?? "");
    return session.page?.exported && Number.isFinite(written) ? written : Date.now();
  }

  function services() {
    return documents.status?.services ?? [];
  }

  // The services of the definition, and those that the cluster has besides: name -> status or null.
  function serviceNames() {
    const defined = (documents.definition?.services ?? []).map((row) => row.service);
    return [...new Set([...defined, ...services().map((row) => row.service)])];
  }

  function service(name) {
    return services().find((row) => row.service === name) ?? null;
  }

  function definedService(name) {
    return (documents.definition?.services ?? []).find((row) => row.service === name) ?? null;
  }

  function isReadOnly() {
    return Boolean(session.page?.read_only || session.page?.exported);
  }

  // Why a view has no document.
  function missing(topic, name) {
    if (session.page?.exported) return `The ${name} was not read.`;
    if (["definition", "preview"].includes(topic) && !session.environment?.has_definition)
      return `The ${name} of this environment is not on this machine.`;
    return `Reading the ${name} …`;
  }

  return {
    documents,
    session,
    onChange,
    changed,
    set,
    clear,
    setSession,
    now,
    services,
    serviceNames,
    service,
    definedService,
    isReadOnly,
    missing,
  };
})();
