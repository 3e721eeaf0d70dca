// Owns the log lines that are kept and which of them are shown. It knows no element.
// Lines have numbers that count from the first that ever came, as the oldest are dropped.
"use strict";

class LogBuffer {
  static MAX_LINES = 100000;
  // Lines can be long: without this limit, they would fill the memory of the tab.
  static MAX_CHARS = 50000000;

  constructor() {
    this.clear();
    this.services = new Set();
    this.pattern = null;
  }

  clear() {
    this.lines = [];
    this.first = 0;
    this.matches = null; // numbers of the lines that are shown; null: all are
    this.longest = 0;
    this.chars = 0;
    this.latest = new Map(); // pod, service and container -> the time of its last line
    // Those whose first new line after a reconnection did not come yet -> whether a known line did.
    this.waiting = new Map();
  }

  // Lines are [time, service, pod, text, is_one_off, container]; the service's own container is "".
  // Returns how many of the shown ones were dropped.
  add(rows) {
    for (const [time, service, pod, content, isOneOff, container = ""] of rows) {
      const source = `${pod} ${service} ${container}`;
      if (this.isKnown(source, time, pod)) continue;
      this.latest.set(source, comparable(time));
      this.push({
        time,
        service,
        pod,
        text: text.cleanLine(content),
        isOneOff: Boolean(isOneOff),
        container,
        isNote: false,
      });
    }
    return this.drop();
  }

  // A stream that fails again and again brings the same note each time.
  note(message) {
    const last = this.lines.at(-1);
    if (last?.isNote && last.text === message) return 0;
    this.push(noteOf(message));
    return this.drop();
  }

  // After a reconnection the last lines come again: those that are kept already are left out.
  expectRepetition() {
    this.waiting = new Map([...this.latest.keys()].map((source) => [source, false]));
  }

  isKnown(source, time, pod) {
    if (!this.waiting.has(source)) return false;
    const isKnown = comparable(time) <= this.latest.get(source);
    if (isKnown) {
      this.waiting.set(source, true);
      return true;
    }
    if (!this.waiting.get(source)) this.push(noteOf(`lines of ${pod} may be missing here`));
    this.waiting.delete(source);
    return false;
  }

  push(line) {
    this.lines.push(line);
    this.longest = Math.max(this.longest, line.text.length);
    this.chars += line.text.length;
    if (this.matches && this.isShown(line)) this.matches.push(this.first + this.lines.length - 1);
  }

  drop() {
    let excess = 0;
    while (this.lines.length - excess > LogBuffer.MAX_LINES || this.chars > LogBuffer.MAX_CHARS) {
      this.chars -= this.lines[excess].text.length;
      excess += 1;
    }
    if (!excess) return 0;
    this.lines.splice(0, excess);
    this.first += excess;
    if (!this.matches) return excess;
    let dropped = 0;
    while (dropped < this.matches.length && this.matches[dropped] < this.first) dropped += 1;
    this.matches.splice(0, dropped);
    return dropped;
  }

  filter(query, services) {
    this.services = new Set(services);
    this.pattern = query ? new RegExp(query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i") : null;
    this.matches = null;
    if (!this.pattern && !this.services.size) return;
    this.matches = [];
    this.lines.forEach((line, index) => {
      if (this.isShown(line)) this.matches.push(this.first + index);
    });
  }

  isShown(line) {
    if (line.isNote) return !this.pattern;
    if (this.services.size && !this.services.has(line.service)) return false;
    return !this.pattern || this.pattern.test(line.text) || this.pattern.test(line.service);
  }

  get shownCount() {
    return this.matches ? this.matches.length : this.lines.length;
  }

  // The number of the shown line at an index, and the line of a number.
  numberAt(index) {
    return this.matches ? this.matches[index] : this.first + index;
  }

  lineOf(number) {
    return this.lines[number - this.first];
  }

  indexOf(number) {
    return this.matches ? this.matches.indexOf(number) : number - this.first;
  }
}

function noteOf(message) {
  return { time: "", service: "", pod: "", text: message, isOneOff: false, container: "", isNote: true };
}

// Fractions of seconds differ in length: as text, "…00.5Z" and "…00.50Z" would differ.
function comparable(time) {
  const [whole, fraction = ""] = time.replace(/Z$/, "").split(".");
  return `${whole}.${fraction.padEnd(9, "0")}`;
}
