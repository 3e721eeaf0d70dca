// Owns the view of one service: its state, problem, pods, addresses, image, variables and events.
"use strict";

const service = (() => {
  const { element } = dom;
  const POD_COLUMNS = [["Pod"], ["State"], ["Ready"], ["Restarts", "number"], ["Age", "number"], ["Node"]];
  const RUN_COLUMNS = [["Run"], ["Result"], ["Started"], ["Took", "number"], ["Exit status", "number"]];

  function render(route) {
    const name = route.argument;
    const row = store.service(name);
    const defined = store.definedService(name);
    if (!row && !defined) return missing(name);
    return [
      head(name, row),
      actions.outcome(),
      problem(row),
      about(row, defined),
      row && pods(row),
      row?.schedule && runs(row.schedule),
      variables(defined),
      events(name),
    ];
  }

  function missing(name) {
    const message =
      store.documents.status || store.documents.definition
        ? `There is no service ${name} in this environment.`
        : store.missing("status", "status");
    return [element("h1", { tabindex: -1 }, name), parts.empty(message)];
  }

  function head(name, row) {
    return element(
      "div",
      { class: "page-head" },
      element("div", { class: "page-title" }, element("h1", { tabindex: -1 }, name), row && overview.badge(row)),
      element(
        "div",
        { class: "buttons" },
        element("a", { class: "button", href: routes.to("logs", "", { service: name }) }, "Logs"),
        row && actions.buttons([row], [name]),
      ),
    );
  }

  function problem(row) {
    if (!row?.problem) return null;
    const tone = row.state === "failing" ? "bad" : "warn";
    return parts.section(
      "Problem",
      { id: "problem" },
      element("div", { class: `problem panel ${tone}` }, overview.problem(row, false)),
    );
  }

  function about(row, defined) {
    return parts.facts([
      ["Kind", row?.kind ?? ""],
      ["Ready", row ? `${row.ready} of ${row.desired}` : ""],
      ["Restarts", row ? text.number(row.restarts) : ""],
      ["Age", row ? parts.age(row.created) : ""],
      ["Image", row ? overview.image(row) : "", "long"],
      ["Addresses", row?.urls.length ? element("ul", { class: "addresses" }, parts.addresses(row.urls)) : "", "long"],
      ["Defined in", defined ? parts.placeLink(defined.place) : ""],
      ["Developed by", row?.developer ?? ""],
      ["Schedule", row?.schedule ? `${row.schedule.cron} (${row.schedule.timezone || "UTC"})` : ""],
      ["Next runs", (row?.schedule?.next_runs ?? []).map(text.localTime).join(", "), "long"],
      [
        "Not in its pods",
        (row?.omitted_volumes ?? []).map((volume) =>
          element("div", {}, element("code", {}, volume.path), " ", parts.placeLink(volume)),
        ),
        "long",
      ],
    ]);
  }

  function pods(row) {
    const known =
      row.pod_status ?? row.pods.map((name) => ({ name, state: "", ready: null, restarts: 0, created: "", node: "" }));
    const rows = known.map((pod) => ({
      key: pod.name,
      cells: [
        element("code", {}, pod.name),
        pod.state,
        pod.ready === null ? "" : states.badge(pod.ready ? "ready" : "not-ready"),
        text.number(pod.restarts),
        parts.age(pod.created),
        pod.node,
      ],
    }));
    return parts.section(
      "Pods",
      { id: "pods" },
      rows.length ? parts.table("Pods, scrolls", POD_COLUMNS, rows) : parts.empty("It has no pods."),
    );
  }

  function runs(schedule) {
    const rows = schedule.runs.map((run) => ({
      key: run.job,
      cells: [
        element("code", {}, run.job),
        states.badge(run.result, run.manual ? ", started by hand" : ""),
        parts.moment(run.started),
        text.duration((Date.parse(run.ended) - Date.parse(run.started)) / 1000),
        run.exit_status ?? "",
      ],
    }));
    return parts.section(
      "Runs",
      { id: "runs" },
      rows.length ? parts.table("Runs, scrolls", RUN_COLUMNS, rows) : parts.empty("It has not run yet."),
    );
  }

  function variables(defined) {
    if (!defined?.variables?.length) return null;
    return parts.section("Variables", { id: "variables" }, tables.variables(defined.variables));
  }

  function events(name) {
    const rows = (store.documents.events?.events ?? []).filter((event) => event.service === name);
    return parts.section(
      "Events",
      { id: "events" },
      tables.notRead("events") ??
        (rows.length ? tables.events(rows, false) : parts.empty("The cluster has no events of it.")),
    );
  }

  return { title: (route) => route.argument, render };
})();
