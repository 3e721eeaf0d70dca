// Owns the first view: what needs a person, the operation that runs, the services as a table and as a graph.
"use strict";

const overview = (() => {
  const { element } = dom;
  // As many as a person reads at once.
  const MAX_PROBLEMS = 10;
  const COLUMNS = [
    ["Service"],
    ["State"],
    ["Ready", "number"],
    ["Restarts", "number"],
    ["Age", "number"],
    ["Image"],
    ["Addresses"],
  ];

  function problems() {
    const rows = store.services().filter((row) => row.problem);
    const errors = (store.documents.definition?.diagnostics ?? []).filter((row) => row.severity === "error");
    if (!rows.length && !errors.length) return null;
    const rest = rows.slice(MAX_PROBLEMS);
    return parts.section(
      "Problems",
      { id: "problems" },
      problemList(rows.slice(0, MAX_PROBLEMS)),
      rest.length > 0 &&
        element(
          "details",
          { class: "more" },
          element("summary", {}, text.count(rest.length, "more problem")),
          problemList(rest),
        ),
      parts.diagnostics(errors),
    );
  }

  function problemList(rows) {
    const list = rows.map((row) =>
      dom.lazy(element("li"), row.service, fingerprint(row), () =>
        element("li", { "data-key": row.service, class: `problem panel ${tone(row)}` }, problem(row, true)),
      ),
    );
    return list.length > 0 && element("ul", { class: "problems" }, list);
  }

  // All that the table or a problem shows of a service.
  function fingerprint(row) {
    const { stamp } = store.documents.definition ?? {};
    return JSON.stringify([row, text.age(row.created, store.now()), definedImage(row.service), stamp]);
  }

  function tone(row) {
    return row.state === "failing" ? "bad" : "warn";
  }

  // A service's problem, its hint, place and last log lines.
  function problem(row, isLinked) {
    return [
      element(
        "p",
        { class: "problem-head" },
        states.icon(row.state === "failing" ? "failing" : "warning"),
        isLinked && element("b", {}, parts.serviceLink(row.service), " "),
        element("span", {}, row.problem),
      ),
      row.hint && element("p", { class: "hint" }, row.hint),
      element(
        "p",
        { class: "problem-links" },
        parts.placeLink(row.place),
        element("a", { href: routes.to("logs", "", { service: row.service }) }, `Logs of ${row.service}`),
        row.code && element("span", { class: "muted" }, `[${row.code}]`),
      ),
      files.excerpt(row.place),
      parts.logLines(row.log_lines, `Last log lines of ${row.service}`),
    ];
  }

  function counts() {
    const counted = new Map();
    for (const row of store.services()) counted.set(row.state, (counted.get(row.state) ?? 0) + 1);
    const present = states.ORDER.filter((state) => counted.has(state));
    return element(
      "ul",
      { class: "counts", "aria-label": "Services by state" },
      present.map((state) =>
        element(
          "li",
          { class: `state ${states.look(state).tone}` },
          states.icon(state),
          element("span", {}, element("b", {}, counted.get(state)), ` ${states.look(state).label}`),
        ),
      ),
    );
  }

  function services() {
    const rows = [...store.services()].sort((left, right) => states.rank(left.state) - states.rank(right.state));
    if (!store.documents.status) return definedServices() ?? parts.empty(store.missing("status", "status"));
    if (!rows.length) return parts.empty("There are no services.");
    return parts.table(
      "Services, scrolls",
      COLUMNS,
      rows.map((row) => ({
        key: row.service,
        fingerprint: fingerprint(row),
        cells: () => cells(row),
        className: row.state === "failing" ? "is-failing" : "",
      })),
    );
  }

  // Without a status, the services are those of the definition.
  function definedServices() {
    const rows = store.documents.definition?.services ?? [];
    if (!rows.length) return null;
    return parts.table(
      "Services, scrolls",
      [["Service"], ["State"], ["Defined in", "wide"]],
      rows.map((row) => ({
        key: row.service,
        cells: [parts.serviceLink(row.service), states.badge("unknown"), parts.placeLink(row.place)],
      })),
    );
  }

  // Warnings of the definition wait until somebody asks for them; errors are among the problems.
  function warnings() {
    const rows = (store.documents.definition?.diagnostics ?? []).filter((row) => row.severity === "warning");
    if (!rows.length) return null;
    return element(
      "details",
      { class: "section", "data-key": "warnings" },
      element("summary", {}, text.count(rows.length, "warning"), " about the definition"),
      parts.diagnostics(rows),
    );
  }

  function cells(row) {
    return [
      parts.serviceLink(row.service),
      badge(row),
      `${row.ready}/${row.desired}`,
      element("span", { class: row.restarts ? "warn-text" : "muted" }, text.number(row.restarts)),
      parts.age(row.created),
      image(row),
      row.urls.length ? element("ul", { class: "addresses" }, parts.addresses(row.urls)) : null,
    ];
  }

  function badge(row) {
    return states.badge(row.state, row.developer ? ` by ${row.developer}` : "");
  }

  function definedImage(service) {
    const nodes = store.documents.definition?.graph.nodes ?? [];
    return nodes.find((node) => node.kind === "service" && node.name === service)?.details[1] ?? "";
  }

  // The image of the definition, and beside it the digest or the other image that runs; the tooltip has all of it.
  function image(row) {
    const [digest = ""] = /sha256:[0-9a-f]{12}/.exec(row.image) ?? [];
    const running = row.image.replace(/@?sha256:[0-9a-f]+$/, "");
    const defined = definedImage(row.service) || running;
    const other = digest || (running === defined ? "" : running);
    return element(
      "span",
      { class: "image", title: row.image },
      text.shorten(defined, 60),
      other && element("span", { class: "muted" }, ` ${other}`),
    );
  }

  function render() {
    const isRunning = store.documents.operation?.state === "running";
    return [
      element("h1", { tabindex: -1, class: "hidden-text" }, "Overview"),
      actions.outcome(),
      // An operation that has ended explains what is below; what needs a person comes first.
      ...(isRunning ? [operation.view(), problems()] : [problems(), operation.view()]),
      parts.section("Services", { id: "services", aside: counts() }, services()),
      graph.view(),
      warnings(),
    ];
  }

  return { title: () => "Overview", render, problem, badge, image };
})();
