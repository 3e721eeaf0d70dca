// Owns how an operation is shown as it runs: its steps, and the phase of each service, from whichever terminal it is.
"use strict";

const operation = (() => {
  const { element } = dom;
  const FINAL = new Set(["built", "ready", "unchanged", "failed", "done"]);

  function view() {
    const running = store.documents.operation;
    if (!running || !isRecent(running)) return null;
    const services = Object.entries(running.services ?? {});
    const finished = services.filter(([, row]) => FINAL.has(row.phase)).length;
    return parts.section(
      title(running),
      { id: "operation", aside: outcome(running) },
      element(
        "div",
        { class: "panel operation" },
        services.length > 0 && progress(running, finished, services.length),
        running.steps?.length ? element("ol", { class: "steps" }, running.steps.map(step)) : null,
        services.length > 0 && element("ul", { class: "phases" }, services.map(phase)),
        running.notes?.length
          ? element(
              "ul",
              { class: "notes" },
              running.notes.map((note) => element("li", {}, note)),
            )
          : null,
      ),
    );
  }

  function outcome(running) {
    const isRunning = running.state === "running";
    return element(
      "span",
      { class: "outcome" },
      !isRunning && element("span", { class: "muted" }, parts.age(running.ended), " ago"),
      states.badge(running.state),
    );
  }

  // One that ended well an hour ago is in the history.
  function isRecent(running) {
    if (running.state === "running") return true;
    const seconds = (store.now() - Date.parse(running.ended)) / 1000;
    return seconds < (running.state === "done" ? 120 : 3600);
  }

  function title(running) {
    const name = running.operation.charAt(0).toUpperCase() + running.operation.slice(1);
    const end = running.state === "running" ? store.now() : Date.parse(running.ended);
    const seconds = (end - Date.parse(running.started)) / 1000;
    const who = running.user ? ` by ${running.user}` : "";
    return `${name}${who}${seconds >= 0 ? `, ${text.duration(Math.max(seconds, 0))}` : ""}`;
  }

  function progress(running, finished, all) {
    return element(
      "div",
      { class: `progress ${running.state === "failed" ? "is-failed" : ""}` },
      element("progress", { max: all, value: finished, "aria-label": "Services that are finished" }),
      element("span", { class: "muted" }, `${text.number(finished)} of ${text.count(all, "service")}`),
    );
  }

  function step(row) {
    return element("li", {}, states.icon(row.phase === "started" ? "running" : row.phase), row.name, seconds(row));
  }

  function phase([name, row]) {
    return element(
      "li",
      { "data-key": name, class: FINAL.has(row.phase) && row.phase !== "failed" ? "is-final" : "" },
      parts.serviceLink(name),
      states.badge(row.phase),
      seconds(row),
      row.message && element("span", { class: "phase-message" }, row.message),
    );
  }

  function seconds(row) {
    return row.seconds > 0 && element("span", { class: "muted number" }, ` ${text.duration(row.seconds)}`);
  }

  return { view };
})();
