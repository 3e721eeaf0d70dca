// Owns how values become text: control characters, ages, durations, moments, numbers with their nouns.
// It knows neither the page nor the documents.
"use strict";

const text = (() => {
  // Characters that show nothing, or change the order of those around them: a name must not disguise itself.
  const INVISIBLE =
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
  const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/;
  // Sequences that move a cursor, color text or set a title, as `platform logs` removes them.
  const SEQUENCE =
    /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\n]*?(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x9b[0-?]*[ -/]*[@-~]/g;
  const REMOVED = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069\p{Cs}]/gu;
  const UNITS = [
    ["d", 86400],
    ["h", 3600],
    ["min", 60],
    ["s", 1],
  ];
  const NUMBER = new Intl.NumberFormat("en");
  const DATE = new Intl.DateTimeFormat("sv", { dateStyle: "short", timeStyle: "medium" });

  function visible(value) {
    return value.replace(INVISIBLE, escapeOf);
  }

  function escapeOf(character) {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  }

  function cleanLine(line) {
    return CONTROL.test(line) ? line.replace(SEQUENCE, "").replace(REMOVED, "") : line;
  }

  function shorten(value, length) {
    return value.length > length ? `${value.slice(0, length - 1)}…` : value;
  }

  function duration(seconds) {
    if (!(seconds >= 0)) return "";
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    const index = UNITS.findIndex(([, size]) => seconds >= size);
    const [unit, size] = UNITS[index];
    const first = Math.floor(seconds / size);
    const [smaller, smallerSize] = UNITS[index + 1] ?? ["", 0];
    const rest = smallerSize ? Math.floor((seconds % size) / smallerSize) : 0;
    return rest && first < 10 ? `${first} ${unit} ${rest} ${smaller}` : `${first} ${unit}`;
  }

  // An age has one unit: it is read beside many others.
  function age(moment, now) {
    const seconds = Math.max(0, (now - Date.parse(moment)) / 1000);
    if (!Number.isFinite(seconds)) return "";
    const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? ["s", 1];
    return `${Math.floor(seconds / size)} ${unit}`;
  }

  function localTime(moment) {
    const time = Date.parse(moment);
    return Number.isFinite(time) ? DATE.format(time) : String(moment ?? "");
  }

  function number(value) {
    return NUMBER.format(value);
  }

  function count(value, noun) {
    return `${number(value)} ${noun}${value === 1 ? "" : "s"}`;
  }

  function place(place) {
    return `${place.file}:${place.line}`;
  }

  function isWebAddress(address) {
    return /^https?:\/\//i.test(address);
  }

  return { visible, cleanLine, shorten, duration, age, localTime, number, count, place, isWebAddress };
})();
