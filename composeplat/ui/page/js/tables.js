// Owns the views that are one table each: events, the history of deployments, variables.
"use strict";

const tables = (() => {
  const { element } = dom;
  const DONE = { create: "created", update: "updated", replace: "replaced", delete: "deleted" };
  const SIGNS = { create: "+", update: "~", replace: "!", delete: "−", kept: "=" };

  function page(title, note, content) {
    return [
      element("div", { class: "page-head" }, element("h1", { tabindex: -1 }, title)),
      note && element("p", { class: "muted" }, note),
      content,
    ];
  }

  function notRead(topic) {
    return store.documents[topic]
      ? null
      : parts.empty(store.missing(topic, topic === "events" ? "list of events" : topic));
  }

  function events(rows, hasService = true) {
    const columns = [
      ["Time"],
      ["Type"],
      ...(hasService ? [["Service"]] : []),
      ["Object"],
      ["Reason"],
      ["Message", "wide"],
      ["Count", "number"],
    ];
    const shown = rows.map((row) => {
      const fingerprint = JSON.stringify(row);
      return { key: fingerprint, fingerprint, cells: () => eventCells(row, hasService) };
    });
    return parts.table("Events, scrolls", columns, shown);
  }

  function eventCells(row, hasService) {
    return [
      parts.moment(row.time),
      states.badge(row.type === "Warning" ? "warning" : "info"),
      ...(hasService ? [row.service && parts.serviceLink(row.service)] : []),
      row.object,
      row.reason,
      row.message,
      text.number(row.count),
    ];
  }

  const eventView = {
    title: () => "Events",
    render: () => {
      const rows = store.documents.events?.events ?? [];
      const content =
        notRead("events") ??
        (rows.length
          ? events(rows)
          : parts.empty("The cluster has no events of this environment.", "It keeps them for about an hour."));
      return page("Events", "What Kubernetes reports, from the last hour.", content);
    },
  };

  const historyView = {
    title: () => "History",
    render: () => {
      const rows = store.documents.history?.revisions ?? [];
      const content =
        notRead("history") ??
        (rows.length ? history(rows) : parts.empty("Nothing was deployed yet.", "platform deploy"));
      return page("History", "", content);
    },
  };

  function history(rows) {
    const columns = [
      ["Revision"],
      ["Result"],
      ["Started"],
      ["Took", "number"],
      ["Who"],
      ["Commit"],
      ["Changes", "wide"],
    ];
    return parts.table(
      "History, scrolls",
      columns,
      rows.map((row) => ({
        key: `${row.revision}`,
        cells: [
          `${row.revision}`,
          states.badge(row.result),
          parts.moment(row.started),
          text.duration(row.seconds),
          row.who,
          commit(row),
          changes(row),
        ],
      })),
    );
  }

  function commit(row) {
    if (!row.commit) return null;
    return [
      element("code", { title: row.commit }, row.commit.slice(0, 8), row.dirty ? "*" : ""),
      row.branch && ` ${row.branch}`,
      row.dirty && element("span", { class: "hidden-text" }, " with changes that are in no commit"),
    ];
  }

  function changes(row) {
    const command =
      row.command === "deploy"
        ? ""
        : row.rolled_back_to === null
          ? row.command
          : `rolled back to ${row.rolled_back_to}`;
    return [
      command && element("div", {}, command),
      element(
        "ul",
        { class: "plain" },
        row.changes.map((change) =>
          element(
            "li",
            {},
            sign(change.operation),
            `${DONE[change.operation] ?? change.operation} ${change.part.type} ${change.part.name}`,
            change.images.map((image) =>
              element("div", { class: "muted image" }, `${image.old || "(none)"} → ${image.new || "(none)"}`),
            ),
          ),
        ),
      ),
      row.omitted_changes > 0 && element("div", { class: "muted" }, text.count(row.omitted_changes, "more change")),
    ];
  }

  function sign(operation) {
    return element("span", { class: `sign ${operation}`, "aria-hidden": "true" }, SIGNS[operation] ?? "");
  }

  function variables(rows) {
    return parts.table(
      "Variables, scrolls",
      [["Name"], ["Secret"], ["Source", "wide"]],
      rows.map((row) => ({
        key: row.name,
        cells: [element("code", {}, row.name), row.is_secret ? "secret" : "", source(row.source)],
      })),
    );
  }

  // A source such as "compose.yaml:14" is a place in a file of the definition.
  function source(written) {
    const [, file, line] = /^(.+):(\d+)$/.exec(written) ?? [];
    const isFile = (store.documents.definition?.files ?? []).some((row) => row.path === file);
    return isFile ? parts.placeLink({ file, line: Number(line) }) : written;
  }

  const variableView = {
    title: () => "Variables",
    render: () => {
      const rows = store.documents.definition?.variables ?? [];
      const content =
        notRead("definition") ?? (rows.length ? variables(rows) : parts.empty("The files use no variables."));
      return page("Variables", "By name and where their values are from: no value leaves the terminal.", content);
    },
  };

  return { eventView, historyView, variableView, events, variables, sign, notRead };
})();
