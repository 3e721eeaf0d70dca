// Owns the start of the page, which view is shown, and the streams of the environment that is shown.
"use strict";

const app = (() => {
  const { element } = dom;
  const VIEWS = {
    "": overview,
    service,
    logs,
    changes,
    history: tables.historyView,
    events: tables.eventView,
    file: files,
    variables: tables.variableView,
    unknown: {
      title: () => "Not found",
      render: () => [element("h1", { tabindex: -1 }, "Not found"), parts.empty("The page has no such place.")],
    },
  };
  const EXPORTED_TOPICS = ["definition", "status", "events", "history", "operation", "preview"];
  let shown = null; // the view that is shown, and what it shows
  let stream = null;
  let streamKey = "";
  let isFocusWanted = false;
  let timer = 0;
  const scrolled = new Map(); // how far each entry of the tab's history was scrolled when it was left
  let entry = history.state; // the entry that is shown

  async function start() {
    const exported = document.getElementById("data");
    if (exported) return startExported(JSON.parse(exported.textContent));
    clearTimeout(timer);
    try {
      const page = await connection.read("/api/page");
      stream?.close();
      stream = null;
      store.setSession({ page, needsCode: false, wrongCode: false, failure: "" });
      frame.announce("");
      routeChanged(false);
    } catch (error) {
      if (error.status !== 401) failed(error);
    }
    return undefined;
  }

  function failed(error) {
    store.setSession({ failure: `The page can't be read: ${error.message}`, connection: "reconnecting" });
    clearTimeout(timer);
    timer = setTimeout(start, 2000);
  }

  function startExported(data) {
    for (const topic of EXPORTED_TOPICS) store.documents[topic] = data[topic] ?? null;
    store.setSession({ page: { ...data.page, exported: true }, exported: data, connection: "exported" });
    routeChanged(false);
  }

  function routeChanged(isMoved = true) {
    routes.enter();
    isFocusWanted = isMoved;
    if (isMoved) leaveEntry();
    const route = routes.current();
    if (store.session.page) selectEnvironment(route);
    draw();
    nameEntry();
  }

  function selectEnvironment(route) {
    const listed = store.session.page.environments;
    const environment =
      listed.length === 1
        ? listed[0]
        : (listed.find((row) => row.namespace === route.namespace && row.environment === route.environment) ??
          (route.namespace
            ? { namespace: route.namespace, environment: route.environment, has_definition: false }
            : null));
    const key = environment ? connection.environmentPath(environment) : "";
    store.session.environment = environment;
    if (store.session.exported || (stream && key === streamKey)) return;
    stream?.close();
    streamKey = key;
    store.clear();
    store.session.connection = "connecting";
    const isListed = !environment;
    stream = new connection.Stream(isListed ? "/api/stream" : `${key}/stream`, {
      document: isListed ? receiveList : receive,
      state: showConnection,
    });
  }

  function receiveList({ topic, data }) {
    if (topic === "environments") store.setSession({ environments: data });
    else if (topic === "problem") store.set(topic, data);
  }

  function receive({ topic, data }) {
    if (topic === "action") actions.announce(store.documents.action, data);
    if (topic !== "alive") store.set(topic, data);
  }

  function showConnection(state, failure = "") {
    const before = store.session.connection;
    store.setSession({ connection: state, failure });
    if (state === before) return;
    if (state === "reconnecting") frame.announce("Not connected, trying again.");
    else if (state === "live" && before === "reconnecting") frame.announce("Connected again.");
  }

  function draw() {
    const { page, needsCode, environment } = store.session;
    const route = routes.current();
    const main = document.getElementById("main");
    dom.update(document.getElementById("header"), needsCode ? [] : frame.header(route));
    if (needsCode) return drawSignIn(main);
    if (!page) return dom.update(main, element("p", { class: "empty" }, "Reading …"));
    const view = environment ? VIEWS[route.name] : environments;
    if (shown?.view !== view) shown?.view.leave?.();
    const isNew = shown?.view !== view || shown?.argument !== route.argument;
    shown = { view, argument: route.argument };
    if (isNew) dom.update(main);
    main.className = `view-${route.name || "overview"}`;
    dom.update(main, view.render(route));
    document.title = [view.title(route), environment?.environment, "platform"]
      .filter(Boolean)
      .map(text.visible)
      .join(" - ");
    afterDrawing(view, route, isNew);
    return undefined;
  }

  function drawSignIn(main) {
    shown?.view.leave?.();
    shown = null;
    const isNew = !main.querySelector("form");
    dom.update(main, frame.signIn());
    if (isNew || store.session.wrongCode) document.getElementById("code").focus();
  }

  function afterDrawing(view, route, isNew) {
    view.drawn?.(route);
    if (isFocusWanted && isNew) {
      document.querySelector("#main h1")?.focus({ preventScroll: true });
      if (scrolled.has(history.state)) scrollTo(0, scrolled.get(history.state));
      else if (!route.query.has("line")) scrollTo(0, 0);
    }
    isFocusWanted = false;
    frame.announceProblems();
  }

  function leaveEntry() {
    if (entry !== null) scrolled.set(entry, scrollY);
    actions.close();
  }

  // An entry of the history that is new has no state: "back" and "forward" lead to those that have.
  function nameEntry() {
    if (history.state === null) history.replaceState(`${Date.now()} ${Math.random()}`, "");
    // The browser would scroll before the view is drawn; after a reload it knows better.
    history.scrollRestoration = "manual";
    entry = history.state;
  }

  addEventListener("pagehide", () => {
    history.scrollRestoration = "auto";
  });
  document.getElementById("skip").onclick = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  addEventListener("hashchange", () => routeChanged());
  store.onChange(draw);
  start();
  return { start, routeChanged };
})();
