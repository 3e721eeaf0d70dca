// Owns the view of logs: which services, the search, following, and the stream that brings the lines.
"use strict";

const logs = (() => {
  const { element } = dom;
  const TAIL = 500;
  const REPEATED_TAIL = 2000;
  const SEARCH_PAUSE_MS = 150;
  const NARROW_PX = 600;
  const buffer = new LogBuffer();
  let list = null;
  let stream = null;
  let streamKey = ""; // what the lines that are read are of
  let query = "";
  let timer = 0;
  let isFromStart = false;
  let state = "";
  const count = element("span", { class: "muted log-count" });

  function chosen(route) {
    return route.query.getAll("service").filter(Boolean);
  }

  function enter(route) {
    if (!list) {
      list = new LogList(buffer, { onFollow: store.changed, onScroll: showCount });
      list.hasTimes = innerWidth > NARROW_PX;
    }
    const services = chosen(route);
    const { exported, environment } = store.session;
    if (exported) readExported(exported, services);
    else if (environment) openStream(environment, services);
  }

  function readExported(exported, services) {
    const key = JSON.stringify(services);
    if (key === streamKey) return;
    streamKey = key;
    if (!buffer.lines.length) buffer.add(exported.logs ?? []);
    buffer.filter(query, services);
    list.draw();
  }

  function openStream(environment, services) {
    const key = JSON.stringify([environment.namespace, environment.environment, services, isFromStart]);
    if (key === streamKey) return;
    leave();
    streamKey = key;
    buffer.clear();
    buffer.filter(query, services);
    list.select(null);
    list.scrollTo(0);
    list.follow(!isFromStart);
    connectStream(environment, services);
  }

  function connectStream(environment, services) {
    const path = (isAgain) => {
      const search = new URLSearchParams(services.map((name) => ["service", name]));
      if (!isFromStart || isAgain) search.set("tail", isAgain ? REPEATED_TAIL : TAIL);
      return `${connection.environmentPath(environment)}/logs?${search}`;
    };
    const reading = new connection.Stream(
      path(false),
      {
        document: (data) => {
          // Lines that came are not read from the start again.
          if (data.lines) reading.path = path(true);
          receive(data);
        },
        state: showState,
        opened: (isAgain) => isAgain && buffer.expectRepetition(),
      },
      { isSteady: false },
    );
    stream = reading;
  }

  function receive(data) {
    const dropped = data.note ? buffer.note(data.note) : buffer.add(data.lines ?? []);
    list.dropped(dropped);
    list.draw();
  }

  function showState(value) {
    state = { live: "", reconnecting: "reconnecting …", paused: "" }[value] ?? "";
    showCount();
  }

  function leave() {
    stream?.close();
    stream = null;
    streamKey = "";
  }

  function showCount() {
    const all = buffer.lines.length;
    const shown = buffer.shownCount;
    const counted = shown === all ? text.count(all, "line") : `${text.number(shown)} of ${text.count(all, "line")}`;
    dom.update(count, [counted, state].filter(Boolean).join(", "));
  }

  function search(event) {
    const typed = event.target.value;
    clearTimeout(timer);
    timer = setTimeout(() => {
      query = typed;
      buffer.filter(query, chosen(routes.current()));
      list.select(null);
      list.search(query);
    }, SEARCH_PAUSE_MS);
  }

  function render(route) {
    enter(route);
    const services = chosen(route);
    return [
      element(
        "div",
        { class: "page-head" },
        element("h1", { tabindex: -1 }, services.length ? `Logs of ${services.join(", ")}` : "Logs"),
      ),
      element(
        "div",
        { class: "log-tools" },
        searchField(),
        picker(services),
        checkbox("Follow", list.isFollowing, (isOn) => {
          list.select(null);
          list.follow(isOn);
        }),
        checkbox("Times", list.hasTimes, (isOn) => {
          list.hasTimes = isOn;
          list.draw();
        }),
        fromStart(),
        count,
      ),
      store.session.exported && !store.session.exported.logs ? parts.empty("The logs were not read.") : list.root,
    ];
  }

  function searchField() {
    return element("input", {
      type: "search",
      placeholder: "Search the lines",
      "aria-label": "Search the lines",
      autocomplete: "off",
      spellcheck: "false",
      value: query,
      oninput: search,
    });
  }

  function checkbox(label, isOn, onChange) {
    const onchange = (event) => onChange(event.target.checked);
    return element(
      "label",
      { class: "check", "data-key": label },
      element("input", { type: "checkbox", checked: isOn, onchange }),
      label,
    );
  }

  function fromStart() {
    if (store.session.exported) return null;
    return parts.button(
      isFromStart ? "Last lines only" : "From the start",
      () => {
        isFromStart = !isFromStart;
        store.changed();
      },
      { key: "from-start" },
    );
  }

  function picker(services) {
    const names = store.serviceNames();
    if (names.length < 2) return null;
    const summary = services.length ? `${services.length} of ${text.count(names.length, "service")}` : "All services";
    return element(
      "details",
      { class: "picker", "data-key": "picker", onkeydown: closeOnEscape },
      element("summary", { class: "button" }, summary),
      element(
        "fieldset",
        { class: "picker-list" },
        element("legend", { class: "hidden-text" }, "Services"),
        services.length > 0 && parts.button("All services", () => choose([]), { kind: "quiet" }),
        names.map((name) => choice(name, services)),
      ),
    );
  }

  function choice(name, services) {
    const onchange = (event) =>
      choose(event.target.checked ? [...services, name] : services.filter((other) => other !== name));
    const box = element("input", { type: "checkbox", checked: services.includes(name), onchange });
    return element("label", { class: "check", "data-key": name }, box, name);
  }

  function choose(services) {
    history.replaceState(null, "", routes.to("logs", "", { service: services }));
    app.routeChanged(false);
  }

  function closeOnEscape(event) {
    if (event.key !== "Escape") return;
    event.currentTarget.open = false;
    event.currentTarget.querySelector("summary").focus();
  }

  return {
    title: () => "Logs",
    render,
    leave,
    buffer,
    get list() {
      return list;
    },
  };
})();
