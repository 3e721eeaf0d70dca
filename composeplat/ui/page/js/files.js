// Owns the view of the files of the definition: numbered lines, one of them marked, and diagnostics below their lines.
"use strict";

const files = (() => {
  const { element } = dom;
  const MAX_LINES = 20000;
  const LINE_END = /\r\n|[\n\r\u0085\u2028\u2029]/;
  // Before and after the line of a place.
  const EXCERPT_LINES = 2;
  const KEY = /^(\s*(?:- +)*)([^\s:#"'{}[\]&*-][^:#"']*|"[^"]*")(:)(?=\s|$)/;
  let shown = "";

  function all() {
    return store.documents.definition?.files ?? [];
  }

  function render(route) {
    const path = route.argument || all()[0]?.path || "";
    const file = all().find((row) => row.path === path);
    return [
      element("div", { class: "page-head" }, element("h1", { tabindex: -1 }, path || "Files")),
      others(path),
      file ? content(file, Number(route.query.get("line")) || 0) : parts.empty(missing(path)),
    ];
  }

  function missing(path) {
    if (!store.documents.definition) return store.missing("definition", "definition");
    return path ? `The definition has no file ${path}.` : "The definition has no files.";
  }

  function others(path) {
    if (all().length < 2) return null;
    return element(
      "nav",
      { "aria-label": "Files" },
      element(
        "ul",
        { class: "file-links" },
        all().map((row) =>
          element(
            "li",
            {},
            element(
              "a",
              { href: routes.to("file", row.path), "aria-current": row.path === path ? "page" : null },
              row.path,
            ),
          ),
        ),
      ),
    );
  }

  // Large files are built only when they, their messages or the marked line have changed.
  function content(file, marked) {
    const messages = messagesOf(file);
    const fingerprint = JSON.stringify([store.documents.definition.stamp, file.path, marked, [...messages]]);
    const lines = dom.lazy(element("div"), file.path, fingerprint, () => numberedLines(file, marked, messages));
    return parts.scrolled(`Text of ${file.path}, scrolls`, lines);
  }

  // Line -> the diagnostics of that line, and the problems of services that originate there.
  function messagesOf(file) {
    const found = new Map();
    for (const row of store.documents.definition.diagnostics ?? []) {
      if (row.file === file.path) found.set(row.line, [...(found.get(row.line) ?? []), row]);
    }
    for (const row of store.services()) if (row.place?.file === file.path && row.problem) addProblem(found, row);
    return found;
  }

  function numberedLines(file, marked, messages) {
    const lines = file.text.split(LINE_END);
    const shown = lines.slice(0, MAX_LINES);
    const rest = lines.length - MAX_LINES;
    return element(
      "div",
      { class: "file", "data-key": file.path },
      shown.map((line, index) => numbered(line, index + 1, marked, messages.get(index + 1))),
      rest > 0 && text.count(rest, "more line"),
    );
  }

  function addProblem(found, row) {
    const severity = row.state === "failing" ? "error" : "warning";
    const message = { severity, message: `${row.service}: ${row.problem}`, hint: row.hint, code: row.code };
    found.set(row.place.line, [...(found.get(row.place.line) ?? []), message]);
  }

  function numbered(line, number, marked, messages = []) {
    const isMarked = number === marked;
    return [
      element(
        "div",
        {
          class: `line ${isMarked ? "is-marked" : ""}`,
          id: `L${number}`,
          "aria-current": isMarked ? "true" : null,
        },
        lineNumber(number),
        element("code", {}, colored(line)),
      ),
      messages.length > 0 && element("ul", { class: "line-messages" }, messages.map(message)),
    ];
  }

  function lineNumber(number) {
    return element("span", { class: "line-number", "data-line": number, "aria-hidden": "true" });
  }

  function message(row) {
    return parts.message(
      row.severity,
      element("b", {}, `${row.severity}: `),
      row.message,
      row.code && element("span", { class: "muted" }, ` [${row.code}]`),
      row.hint && element("div", { class: "hint" }, row.hint),
    );
  }

  // Keys and comments of YAML have colors; it is no parser, and a wrong color harms nothing.
  function colored(line) {
    if (!line) return " ";
    if (/^\s*#/.test(line)) return element("span", { class: "yaml-comment" }, line);
    const key = line.length < 500 && KEY.exec(line);
    if (!key) return line;
    return [key[1], element("span", { class: "yaml-key" }, key[2]), line.slice(key[1].length + key[2].length)];
  }

  // The lines around a place, with its own marked; nothing if the page does not have the file.
  function excerpt(place) {
    const file = place && all().find((row) => row.path === place.file);
    if (!file) return null;
    const first = Math.max(1, place.line - EXCERPT_LINES);
    const lines = file.text.split(LINE_END).slice(first - 1, place.line + EXCERPT_LINES);
    const rows = lines.map((line, index) => excerptLine(line, first + index, first + index === place.line));
    return parts.scrolled(`Lines of ${text.place(place)}, scrolls`, element("div", { class: "file excerpt" }, rows));
  }

  function excerptLine(line, number, isMarked) {
    return element(
      "div",
      { class: `line ${isMarked ? "is-marked" : ""}` },
      lineNumber(number),
      element("code", {}, isMarked && element("span", { class: "hidden-text" }, "marked: "), colored(line)),
    );
  }

  // Bring the marked line into sight, once for each place.
  function shownAt(route) {
    const line = document.getElementById(`L${Number(route.query.get("line"))}`);
    if (!line || shown === route.hash) return;
    shown = route.hash;
    line.scrollIntoView({ block: "center" });
  }

  return {
    title: (route) => route.argument || "Files",
    render,
    excerpt,
    drawn: shownAt,
    leave: () => {
      shown = "";
    },
  };
})();
