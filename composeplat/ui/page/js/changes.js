// Owns the view of a preview: each object that a deploy would change, with its differences, and the deploy after it.
"use strict";

const changes = (() => {
  const { element } = dom;
  const OPERATIONS = ["create", "update", "replace", "delete"];
  const MAX_VALUE_CHARS = 4000;
  const MAX_LINE_CHARS = 80;

  // The preview of an exported page, or the one that this page asked for.
  function latest() {
    const { action, preview } = store.documents;
    if (store.session.exported) return { preview, previewId: "", isRunning: false };
    const isPreview = action?.action === "preview";
    return {
      preview: isPreview && action.state === "done" ? action.preview : null,
      previewId: isPreview ? action.preview_id : "",
      isRunning: isPreview && action.state === "running",
    };
  }

  function render() {
    const { preview, previewId, isRunning } = latest();
    return [
      element(
        "div",
        { class: "page-head" },
        element("h1", { tabindex: -1 }, "Changes"),
        buttons(preview, previewId, isRunning),
      ),
      element("p", { class: "muted" }, "What a deploy of the files would change in the cluster, object by object."),
      actions.outcome(),
      operation.view(),
      preview ? content(preview) : nothing(isRunning),
    ];
  }

  function nothing(isRunning) {
    if (isRunning)
      return element("p", { class: "empty panel" }, states.badge("running", ": comparing the files with the cluster"));
    const { exported, environment } = store.session;
    if (exported || !environment.has_definition) return parts.empty(store.missing("preview", "preview"));
    if (store.isReadOnly()) return parts.empty("This page is read-only.", "platform preview shows the changes");
    const { action } = store.documents;
    const isDeployed = action?.action === "deploy" && action.state === "done";
    return parts.empty(isDeployed ? "The changes were deployed." : "The files were not compared with the cluster yet.");
  }

  function buttons(preview, previewId, isRunning) {
    if (store.isReadOnly() || !store.session.environment?.has_definition) return null;
    const disabled = isRunning || actions.isRunning();
    const deploy = () =>
      actions.ask("deploy", { previewId, details: [element("p", {}, element("b", {}, summary(preview)))] });
    return element(
      "div",
      { class: "buttons" },
      parts.button(
        preview ? "Compare again" : "Compare with the cluster",
        () => actions.start("preview", { services: [] }),
        {
          disabled,
          kind: preview ? "" : "primary",
          key: "compare",
        },
      ),
      preview &&
        previewId &&
        parts.button("Deploy these changes…", deploy, { disabled, kind: "primary", key: "deploy" }),
    );
  }

  function summary(preview) {
    const counted = OPERATIONS.map((name) => [
      name,
      preview.changes.filter((change) => change.operation === name && !change.kept).length,
    ]).filter(([, number]) => number);
    const changed = counted.map(([name, number]) => `${number} to ${name}`).join(", ") || "no changes";
    return `${changed}; ${preview.unchanged} unchanged`;
  }

  function content(preview) {
    return [
      element("p", { class: "summary" }, element("b", {}, summary(preview))),
      preview.kept_volumes.length > 0 &&
        element(
          "ul",
          { class: "notes panel" },
          preview.kept_volumes.map((name) =>
            element("li", {}, `Volume ${name} is no longer used; it and its data stay in the cluster.`),
          ),
        ),
      preview.notes.length > 0 &&
        element(
          "ul",
          { class: "notes panel" },
          preview.notes.map((note) => element("li", {}, note)),
        ),
      parts.diagnostics(preview.policy_violations.map(violation)),
      grouped(preview.changes).map(group),
    ];
  }

  function violation(row) {
    const severity = row.level === "mandatory" ? "error" : "warning";
    return { severity, message: `${row.message} (policy ${row.policy} of ${row.pack})`, hint: "", ...row.place };
  }

  function grouped(rows) {
    const groups = new Map();
    for (const row of rows) {
      const key = `${row.part.type} ${row.part.name}`;
      groups.set(key, [...(groups.get(key) ?? []), row]);
    }
    return [...groups];
  }

  function group([title, rows], index) {
    return parts.section(
      title,
      { id: `part-${index}` },
      element("ul", { class: "changes panel" }, rows.map(lazyChange)),
    );
  }

  // A preview of many objects is built once.
  function lazyChange(row) {
    const key = `${row.kind} ${row.name} ${row.operation}`;
    return dom.lazy(element("li"), key, JSON.stringify(row), () => change(row, key));
  }

  function change(row, key) {
    const verb = row.kept ? "keep in the cluster, out of the state" : row.operation;
    const differences = row.differences ?? [];
    const reasons = row.reasons.join("; ");
    const head = [
      tables.sign(row.kept ? "kept" : row.operation),
      element(
        "span",
        {},
        element("b", {}, verb),
        ` ${row.kind} `,
        element("code", {}, row.name),
        reasons && [": ", element("span", { class: "muted" }, reasons)],
      ),
    ];
    if (!differences.length)
      return element("li", { "data-key": key, class: "change" }, element("div", { class: "change-head" }, head));
    return element(
      "li",
      { "data-key": key, class: "change" },
      element(
        "details",
        { open: true },
        element("summary", { class: "change-head" }, head),
        element("div", { class: "differences" }, differences.map(difference)),
      ),
    );
  }

  function difference(row) {
    return element(
      "div",
      { class: "difference" },
      element(
        "div",
        { class: "path" },
        element("code", {}, row.path),
        row.replaces && element("span", { class: "warn-text" }, " can't be changed in place"),
      ),
      row.old !== null && value("−", "before", "old", row.old),
      row.new !== null && value("+", "after", "new", row.new),
    );
  }

  function value(sign, label, kind, content) {
    return element(
      "pre",
      { class: `value ${kind}` },
      element("span", { "aria-hidden": "true" }, `${sign} `),
      element("span", { class: "hidden-text" }, `${label}: `),
      element("span", {}, text.shorten(written(content), MAX_VALUE_CHARS)),
    );
  }

  // A short value is on one line.
  function written(content) {
    if (typeof content === "string") return content;
    const line = JSON.stringify(content);
    return line.length <= MAX_LINE_CHARS ? line : JSON.stringify(content, null, 2);
  }

  return { title: () => "Changes", render };
})();
