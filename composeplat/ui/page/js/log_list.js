// Owns the list of log lines on the screen: of 100,000 lines, only those in sight are elements, all of one height.
// The keyboard moves through it as through a list box; the selected line is shown whole below it.
"use strict";

class LogList {
  static ROW_HEIGHT = 20;
  static OVERSCAN_ROWS = 12;
  static MAX_SHOWN_CHARS = 4000;
  static MAX_WHOLE_CHARS = 100000;
  static TINTS = 8;

  constructor(buffer, { onFollow, onScroll }) {
    this.buffer = buffer;
    this.onFollow = onFollow;
    this.onScroll = onScroll;
    this.isFollowing = true;
    this.hasTimes = true;
    this.selected = null; // the number of a line
    this.query = "";
    this.tints = new Map();
    this.frame = 0;
    this.lastTop = 0;
    const { element } = dom;
    this.rows = element("div", { class: "log-rows", role: "presentation" });
    this.spacer = element("div", { class: "log-spacer", role: "presentation" }, this.rows);
    this.box = element(
      "div",
      {
        class: "log-list",
        role: "listbox",
        tabindex: 0,
        "aria-label": "Log lines",
        onscroll: () => this.scrolled(),
        onkeydown: (event) => this.pressed(event),
        onclick: (event) => this.clicked(event),
      },
      this.spacer,
    );
    this.whole = element("div", { class: "log-whole", hidden: true });
    this.root = element("div", { class: "log-view panel" }, this.box, this.whole);
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  // Draw once in the next frame, whatever number of times this is called.
  draw() {
    if (!this.frame) this.frame = requestAnimationFrame(() => this.drawNow());
  }

  drawNow() {
    this.frame = 0;
    const { ROW_HEIGHT, OVERSCAN_ROWS } = LogList;
    const count = this.buffer.shownCount;
    const width = Math.min(this.buffer.longest, LogList.MAX_SHOWN_CHARS) + 60;
    this.spacer.style.height = `${count * ROW_HEIGHT}px`;
    this.spacer.style.minWidth = `max(100%, ${width}ch)`;
    if (this.isFollowing) this.scrollTo(count * ROW_HEIGHT);
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW_HEIGHT) - OVERSCAN_ROWS);
    const last = Math.min(count, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW_HEIGHT) + OVERSCAN_ROWS);
    this.rows.style.transform = `translateY(${first * ROW_HEIGHT}px)`;
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.row(index, count));
    dom.update(this.rows, rows);
    this.onScroll();
  }

  row(index, count) {
    const number = this.buffer.numberAt(index);
    const line = this.buffer.lineOf(number);
    const isSelected = number === this.selected;
    const { element } = dom;
    return element(
      "div",
      {
        id: `line-${number}`,
        "data-key": number,
        role: "option",
        "aria-selected": isSelected ? "true" : "false",
        "aria-posinset": index + 1,
        "aria-setsize": count,
        class: `log-row ${isSelected ? "is-selected" : ""} ${line.isNote ? "is-note" : ""}`,
      },
      this.hasTimes && line.time && element("span", { class: "log-time" }, clock(line.time)),
      !line.isNote && element("span", { class: `log-source tint-${this.tint(line.service)}` }, sourceOf(line)),
      element("span", { class: "log-text" }, this.marked(line.text)),
    );
  }

  marked(content) {
    const rest = `… (${text.count(content.length, "character")}: select the line to see them)`;
    const shown =
      content.length > LogList.MAX_SHOWN_CHARS ? `${content.slice(0, LogList.MAX_SHOWN_CHARS)} ${rest}` : content;
    if (!this.query) return shown;
    const lower = shown.toLowerCase();
    // A letter whose lower case is longer would move the marks.
    if (lower.length !== shown.length) return shown;
    const pieces = [];
    let from = 0;
    for (let at = lower.indexOf(this.query); at >= 0; at = lower.indexOf(this.query, from)) {
      pieces.push(shown.slice(from, at), dom.element("mark", {}, shown.slice(at, at + this.query.length)));
      from = at + this.query.length;
    }
    return [...pieces, shown.slice(from)];
  }

  tint(service) {
    if (!this.tints.has(service)) this.tints.set(service, this.tints.size % LogList.TINTS);
    return this.tints.get(service);
  }

  // Keep the lines in sight where they are when others above them are dropped.
  dropped(count) {
    if (count && !this.isFollowing) this.scrollTo(this.box.scrollTop - count * LogList.ROW_HEIGHT);
    if (this.selected !== null && this.selected < this.buffer.first) this.select(null);
  }

  search(query) {
    this.query = query.toLowerCase();
    this.draw();
  }

  follow(isFollowing) {
    this.isFollowing = isFollowing;
    this.draw();
  }

  // Only a person's scrolling ends or starts following.
  scrollTo(top) {
    this.box.scrollTop = top;
    this.lastTop = this.box.scrollTop;
  }

  scrolled() {
    const rest = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight;
    const isAtEnd = rest < LogList.ROW_HEIGHT;
    const distance = this.box.scrollTop - this.lastTop;
    this.lastTop = this.box.scrollTop;
    if (this.isFollowing && distance < 0 && !isAtEnd) {
      this.isFollowing = false;
      this.onFollow(false);
    } else if (!this.isFollowing && isAtEnd && distance > 0 && this.selected === null) {
      this.isFollowing = true;
      this.onFollow(true);
    }
    this.draw();
  }

  pressed(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / LogList.ROW_HEIGHT) - 1);
    const last = this.buffer.shownCount - 1;
    const current = this.selected === null ? last + 1 : this.buffer.indexOf(this.selected);
    const targets = {
      ArrowUp: current - 1,
      ArrowDown: current + 1,
      PageUp: current - page,
      PageDown: current + page,
      Home: 0,
      End: last,
    };
    if (event.key === "Escape") this.select(null);
    else if (!Object.hasOwn(targets, event.key) || last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    else this.selectIndex(Math.min(Math.max(targets[event.key], 0), last));
    event.preventDefault();
  }

  clicked(event) {
    const row = event.target.closest(".log-row");
    // Marking text is no choice of a line.
    if (!row || !getSelection().isCollapsed) return;
    const number = Number(row.dataset.key);
    if (number === this.selected) this.select(null);
    else this.selectIndex(this.buffer.indexOf(number));
  }

  selectIndex(index) {
    this.select(this.buffer.numberAt(index));
    const top = index * LogList.ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.box;
    if (top < scrollTop) this.scrollTo(top);
    else if (top + LogList.ROW_HEIGHT > scrollTop + clientHeight)
      this.scrollTo(top + LogList.ROW_HEIGHT - clientHeight);
  }

  select(number) {
    this.selected = number;
    const line = number === null ? null : this.buffer.lineOf(number);
    this.whole.hidden = !line;
    if (line) {
      this.isFollowing = false;
      this.onFollow(false);
      this.box.setAttribute("aria-activedescendant", `line-${number}`);
      dom.update(this.whole, this.wholeLine(line));
    } else {
      this.box.removeAttribute("aria-activedescendant");
    }
    this.draw();
  }

  wholeLine(line) {
    const { element } = dom;
    const rest = line.text.length - LogList.MAX_WHOLE_CHARS;
    return [
      element(
        "div",
        { class: "log-whole-head" },
        element(
          "span",
          { class: "muted" },
          line.isNote ? "Note" : `${line.service}, ${placeOf(line)}, ${text.localTime(line.time)}`,
        ),
        parts.button(
          "Close",
          () => {
            this.select(null);
            this.box.focus();
          },
          { kind: "quiet" },
        ),
      ),
      element(
        "pre",
        { tabindex: 0, role: "region", "aria-label": "The whole line" },
        line.text.slice(0, LogList.MAX_WHOLE_CHARS),
        rest > 0 && ` … ${text.count(rest, "more character")}`,
      ),
    ];
  }
}

// The local time of a line, to the millisecond.
function clock(time) {
  const date = new Date(Date.parse(time));
  if (Number.isNaN(date.getTime())) return time;
  const padded = (value, length = 2) => String(value).padStart(length, "0");
  const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()].map((part) => padded(part));
  return `${hours}:${minutes}:${seconds}.${padded(date.getMilliseconds(), 3)}`;
}

function placeOf(line) {
  return line.container ? `pod ${line.pod}, container ${line.container}` : `pod ${line.pod}`;
}

// As `platform logs` writes it: the service, "-run" for a pod of `platform run`, the end of the pod's name, and the
// container, if it is not the service's.
function sourceOf(line) {
  const container = line.container && `/${line.container}`;
  return `${line.service}${line.isOneOff ? "-run" : ""}-${line.pod.slice(line.pod.lastIndexOf("-") + 1)}${container}`;
}
