// Owns what the page can start: preview, deploy, sleep, wake, restart. Each but a preview is asked for again.
"use strict";

const actions = (() => {
  const { element } = dom;
  const MAX_NAMED_CHARS = 24;
  const QUESTIONS = {
    sleep: ["Sleep", "Their pods are deleted; volumes and addresses stay. Wake them at any time."],
    wake: ["Wake", "They get back the pods that they had before they slept."],
    restart: ["Restart", "Their pods are replaced, without a change of the definition."],
    deploy: ["Deploy", "The changes on this page are made. If the definition has changed since, nothing is deployed."],
  };

  function environment() {
    return store.session.environment;
  }

  function isRunning() {
    return store.documents.action?.state === "running" || store.documents.operation?.state === "running";
  }

  async function start(action, body) {
    const path = `${connection.environmentPath(environment())}/actions/${action}`;
    try {
      await connection.send(path, body);
      frame.announce(`${QUESTIONS[action]?.[0] ?? "Preview"} started.`);
    } catch (error) {
      showRefusal(error);
    }
  }

  function showRefusal(error) {
    const close = parts.button("Close", () => dialog.close(), { kind: "primary" });
    const dialog = openDialog(
      "Not started",
      [element("p", {}, error.message), error.hint && element("p", { class: "hint" }, error.hint)],
      [close],
    );
  }

  // Ask whether an action is meant; `services` is empty for all of the environment.
  function ask(action, { services = [], previewId = "", details = [] } = {}) {
    const [verb, explanation] = QUESTIONS[action];
    const { namespace, environment: name } = environment();
    const about = services.length ? services.join(", ") : `all services of ${name}`;
    const title = action === "deploy" ? `Deploy these changes to ${name}?` : `${verb} ${about}?`;
    const body = previewId ? { services, preview_id: previewId } : { services };
    const confirm = parts.button(
      verb,
      () => {
        dialog.close();
        start(action, body);
      },
      { kind: "primary" },
    );
    const cluster = store.documents.definition?.cluster;
    const dialog = openDialog(
      title,
      [
        element("p", {}, explanation),
        ...details,
        element("p", { class: "muted" }, `Namespace ${namespace}${cluster ? `, cluster ${cluster}` : ""}`),
      ],
      [parts.button("Cancel", () => dialog.close()), confirm],
    );
  }

  function openDialog(title, content, buttons) {
    const dialog = element(
      "dialog",
      { "aria-labelledby": "dialog-title", onclose: () => dialog.remove() },
      element("h2", { id: "dialog-title" }, title),
      ...content,
      element("div", { class: "buttons" }, buttons),
    );
    document.getElementById("dialogs").append(dialog);
    dialog.showModal();
    return dialog;
  }

  // A question about one view does not stay on another.
  function close() {
    for (const dialog of document.querySelectorAll("dialog")) dialog.close();
  }

  // The buttons for services by their states; none on a page that only shows. Some services can only be restarted.
  function buttons(rows, services = []) {
    if (store.isReadOnly() || !rows.length || !environment()?.has_definition) return [];
    const disabled = isRunning();
    const isAll = !services.length;
    const about = isAll ? "" : ` ${text.shorten(services.join(", "), MAX_NAMED_CHARS)}`;
    const offered = [
      ["restart", rows.some((row) => !["absent", "asleep"].includes(row.state))],
      ["sleep", isAll && rows.some((row) => !["absent", "asleep", "in-development"].includes(row.state))],
      ["wake", isAll && rows.some((row) => row.state === "asleep")],
    ];
    return offered
      .filter(([, isOffered]) => isOffered)
      .map(([action]) =>
        parts.button(`${QUESTIONS[action][0]}${about}…`, () => ask(action, { services }), {
          disabled,
          key: `action-${action}`,
        }),
      );
  }

  // What this page started, as long as it runs or if it failed; a preview is shown among the changes.
  function outcome() {
    const { action } = store.documents;
    if (!action || (action.action === "preview" && action.state !== "failed")) return null;
    if (action.state === "done" && !action.messages?.length && !action.diagnostics?.length) return null;
    const name = QUESTIONS[action.action]?.[0] ?? "Preview";
    return element(
      "section",
      { class: "section", "aria-labelledby": "action", "data-key": "action" },
      element("div", { class: "section-head" }, element("h2", { id: "action" }, name), states.badge(action.state)),
      action.messages?.length
        ? element(
            "ul",
            { class: "notes panel" },
            action.messages.map((message) => element("li", {}, message)),
          )
        : null,
      parts.diagnostics(action.diagnostics),
    );
  }

  // Read out how an action ended.
  function announce(before, action) {
    if (before?.state !== "running" || action?.state === "running" || !action) return;
    frame.announce(`${QUESTIONS[action.action]?.[0] ?? "Preview"}: ${states.look(action.state).label}.`);
  }

  return { start, ask, close, buttons, outcome, announce, isRunning };
})();
