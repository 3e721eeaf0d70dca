// Owns the small parts that several views share: sections, tables, links to places, messages.
"use strict";

const parts = (() => {
  const { element } = dom;

  function section(title, { id, aside = null, level = "h2" } = {}, ...children) {
    return element(
      "section",
      { class: "section", "aria-labelledby": id, "data-key": id },
      element("div", { class: "section-head" }, element(level, { id }, title), aside),
      ...children,
    );
  }

  // A wide table scrolls in a region of its own, which the keyboard reaches.
  // Columns are [title, class]; each row is {key, cells, className}, the first cell its heading.
  // In a table that changes often, `cells` is a function, called only if the `fingerprint` of the row has changed.
  function table(label, columns, rows) {
    const head = element(
      "tr",
      {},
      columns.map(([title, kind]) => element("th", { scope: "col", class: kind }, title)),
    );
    const body = rows.map((row) =>
      row.fingerprint
        ? dom.lazy(element("tr"), row.key, row.fingerprint, () => tableRow(columns, { ...row, cells: row.cells() }))
        : tableRow(columns, row),
    );
    return scrolled(label, element("table", {}, element("thead", {}, head), element("tbody", {}, body)));
  }

  function tableRow(columns, { key, cells, className }) {
    return element(
      "tr",
      { "data-key": key, class: className },
      cells.map((cell, index) =>
        element(index ? "td" : "th", { scope: index ? null : "row", class: columns[index][1] }, cell),
      ),
    );
  }

  function scrolled(label, ...children) {
    return element("div", { class: "scrolled panel", role: "region", "aria-label": label, tabindex: 0 }, ...children);
  }

  // Rows are [name, value, class]; those without a value are left out.
  function facts(rows) {
    const shown = rows.filter(([, value]) => value !== null && value !== "" && value?.length !== 0);
    return element(
      "dl",
      { class: "facts panel" },
      shown.map(([name, value, kind]) =>
        element("div", { class: kind }, element("dt", {}, name), element("dd", {}, value)),
      ),
    );
  }

  function empty(message, hint = "") {
    return element("p", { class: "empty panel" }, message, hint && element("span", { class: "hint" }, hint));
  }

  function placeLink(place) {
    return place && element("a", { class: "place", href: routes.toPlace(place) }, text.place(place));
  }

  function serviceLink(name) {
    return element("a", { href: routes.to("service", name) }, name);
  }

  function moment(value) {
    return value && element("time", { datetime: value, title: text.localTime(value) }, text.localTime(value));
  }

  function age(value) {
    return value && element("time", { datetime: value, title: text.localTime(value) }, text.age(value, store.now()));
  }

  function addresses(urls) {
    return urls.map((url) => element("li", {}, text.isWebAddress(url) ? outsideLink(url) : url));
  }

  function outsideLink(url) {
    return element(
      "a",
      { href: url, target: "_blank", rel: "noopener noreferrer" },
      url.replace(/^https?:\/\/|\/$/g, ""),
    );
  }

  function logLines(lines, label) {
    if (!lines?.length) return null;
    const cleaned = lines.map((line) => text.cleanLine(line)).join("\n");
    return element("pre", { class: "log-lines", tabindex: 0, role: "region", "aria-label": label }, cleaned);
  }

  // A diagnostic, or what a command reports: severity, message, hint, place.
  function diagnostic(row) {
    return message(
      row.severity,
      element("p", {}, element("b", {}, `${row.severity}: `), row.message),
      row.hint && element("p", { class: "hint" }, row.hint),
      element("p", { class: "muted small" }, row.file && placeLink(row), row.code && ` [${row.code}]`),
    );
  }

  // A message in a list, with the mark of its severity.
  function message(severity, ...content) {
    const tone = states.look(severity).tone;
    return element("li", { class: `message ${tone}` }, states.icon(severity), element("div", {}, content));
  }

  function diagnostics(rows) {
    return rows?.length ? element("ul", { class: "messages panel" }, rows.map(diagnostic)) : null;
  }

  // A disabled button does nothing, and keeps the keyboard focus, which the browser takes from one with `disabled`.
  function button(label, onclick, { kind = "", disabled = false, key = null } = {}) {
    const state = disabled ? { "aria-disabled": "true" } : { onclick };
    return element("button", { type: "button", class: kind, "data-key": key, ...state }, label);
  }

  return {
    section,
    table,
    scrolled,
    facts,
    empty,
    placeLink,
    serviceLink,
    moment,
    age,
    addresses,
    logLines,
    message,
    diagnostics,
    button,
  };
})();
