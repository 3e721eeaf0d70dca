// Owns how a state is shown: its words, its color, and a mark of its own, so that no color has to be seen.
"use strict";

const states = (() => {
  const { element, svg } = dom;
  // In a square of 16: a path, and whether it is filled.
  const MARKS = {
    dot: ["M8 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8z", true],
    ring: ["M8 3.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9z", false],
    half: ["M8 3.500a4.500 4.500 0 1 0 0 9zM8 3.500a4.500 4.500 0 0 1 0 9", false],
    cross: ["m4.500 4.500 7 7m0-7-7 7", false],
    check: ["m3.500 8.500 3 3 6-7", false],
    moon: ["M12.500 10A5.500 5.500 0 0 1 6 3.500a5 5 0 1 0 6.500 6.500z", true],
    diamond: ["M8 3l5 5-5 5-5-5z", true],
    clock: ["M8 3a5 5 0 1 0 0 10A5 5 0 0 0 8 3zm0 2.500V8l2 1.500", false],
    play: ["M5.500 3.500 12 8l-6.500 4.500z", false],
    bang: ["M8 3v6m0 3v.5", false],
    arrow: ["M8 3v9m-4-4 4 4 4-4", false],
    line: ["M4 8h8", false],
  };
  // Tone, mark and words of each state, phase and result.
  const STATES = {
    ready: ["good", "dot", "ready"],
    started: ["busy", "half", "started"],
    starting: ["busy", "half", "starting"],
    completed: ["good", "check", "completed"],
    failing: ["bad", "cross", "failing"],
    asleep: ["idle", "moon", "asleep"],
    absent: ["idle", "ring", "not deployed"],
    "in-development": ["info", "diamond", "in development"],
    scheduled: ["good", "clock", "scheduled"],
    manual: ["idle", "play", "started by hand"],
    "not-ready": ["busy", "half", "not ready"],
    unknown: ["idle", "ring", "unknown"],
    pending: ["idle", "ring", "pending"],
    building: ["busy", "half", "building"],
    built: ["good", "check", "built"],
    applying: ["busy", "arrow", "applying"],
    waiting: ["busy", "clock", "waiting"],
    unchanged: ["idle", "line", "unchanged"],
    running: ["busy", "half", "running"],
    done: ["good", "check", "done"],
    applied: ["good", "check", "applied"],
    failed: ["bad", "cross", "failed"],
    interrupted: ["warn", "bang", "interrupted"],
    unfinished: ["warn", "bang", "unfinished"],
    error: ["bad", "cross", "error"],
    warning: ["warn", "bang", "warning"],
    info: ["info", "dot", "note"],
  };
  // Those that need a person come first.
  const ORDER = [
    "failing",
    "starting",
    "started",
    "in-development",
    "absent",
    "ready",
    "completed",
    "scheduled",
    "manual",
    "asleep",
  ];

  function look(state) {
    const [tone, mark, label] = STATES[Object.hasOwn(STATES, state) ? state : "unknown"];
    return { tone, mark, label: Object.hasOwn(STATES, state) ? label : state || label };
  }

  function markPath(state) {
    const [path, isFilled] = MARKS[look(state).mark];
    return svg("path", { d: path, class: isFilled ? "filled" : "drawn" });
  }

  function icon(state) {
    return svg(
      "svg",
      { viewBox: "0 0 16 16", width: 16, height: 16, class: "mark", "aria-hidden": "true" },
      markPath(state),
    );
  }

  function badge(state, ...details) {
    const { tone, label } = look(state);
    return element("span", { class: `state ${tone}` }, icon(state), element("span", {}, label, details));
  }

  function rank(state) {
    const index = ORDER.indexOf(state);
    return index < 0 ? ORDER.length : index;
  }

  return { look, markPath, icon, badge, rank, ORDER };
})();
