// Owns the frame of all views: the header with the environment and the connection, the navigation, signing in,
// and the line that screen readers read out.
"use strict";

const frame = (() => {
  const { element } = dom;
  const ANNOUNCE_INTERVAL_MS = 10000;
  const OF_DEFINITION = new Set(["changes", "file", "variables"]);
  const PLACES = [
    ["", "Overview"],
    ["logs", "Logs"],
    ["changes", "Changes"],
    ["history", "History"],
    ["events", "Events"],
    ["file", "Files"],
    ["variables", "Variables"],
  ];
  const CONNECTIONS = {
    connecting: ["busy", "Connecting …"],
    live: ["good", "Live"],
    reconnecting: ["warn", "Not connected, trying again …"],
    paused: ["idle", "Paused"],
    exported: ["idle", "Exported"],
  };
  let announcedEnvironment = "";
  let announcedProblems = null;
  let announcedAt = 0;

  function header(route) {
    const { environment, page } = store.session;
    const isCluster = page && page.environments.length !== 1;
    return [
      element(
        "div",
        { class: "bar" },
        element(
          "div",
          { class: "identity" },
          logo(),
          isCluster && environment && element("a", { href: "#/", class: "crumb" }, "Environments"),
          !environment && element("p", { class: "environment" }, element("b", {}, "platform")),
          environment && title(environment),
        ),
        environment &&
          element(
            "div",
            { class: "buttons", role: "group", "aria-label": "All services" },
            actions.buttons(store.services()),
          ),
        connectionState(page),
      ),
      environment && navigation(route),
      notes(page),
    ];
  }

  function logo() {
    return dom.svg(
      "svg",
      { viewBox: "0 0 32 32", width: 28, height: 28, class: "logo", "aria-hidden": "true" },
      dom.svg("rect", { width: 32, height: 32, rx: 8 }),
      dom.svg("path", { d: "M8 11.500 16 7l8 4.500-8 4.500z", class: "logo-top" }),
      dom.svg("path", { d: "m8 16 8 4.500L24 16M8 20.500 16 25l8-4.500", class: "logo-layers" }),
    );
  }

  function title({ namespace, environment }) {
    const cluster = store.documents.definition?.cluster;
    return element(
      "p",
      { class: "environment" },
      element("b", {}, environment),
      element("span", { class: "muted" }, `namespace ${namespace}`, cluster && ` · cluster ${cluster}`),
    );
  }

  function connectionState(page) {
    const [tone, label] = CONNECTIONS[store.session.connection];
    const written = page?.exported ? element("span", {}, label, " ", parts.moment(page.written)) : label;
    return element(
      "p",
      { class: `connection state ${tone}` },
      states.icon({ good: "ready", warn: "warning", busy: "running", idle: "absent" }[tone]),
      element("span", {}, written, page?.read_only && !page.exported && ", read-only"),
    );
  }

  function navigation(route) {
    const problems = store.services().filter((row) => row.state === "failing").length;
    const active = route.name === "service" ? "" : route.name;
    const { exported, environment } = store.session;
    const places = PLACES.filter(([name]) => exported || environment.has_definition || !OF_DEFINITION.has(name));
    return element(
      "nav",
      { "aria-label": "Views", class: "views" },
      element(
        "ul",
        {},
        places.map(([name, label]) =>
          element(
            "li",
            {},
            element(
              "a",
              {
                href: routes.to(name),
                "aria-current": name === active ? (route.name === name ? "page" : "true") : null,
              },
              label,
              name === "" &&
                problems > 0 &&
                element("span", { class: "badge" }, problems, element("span", { class: "hidden-text" }, " failing")),
            ),
          ),
        ),
      ),
    );
  }

  function notes(page) {
    const { problem } = store.documents;
    const messages = [...(page?.notes ?? []), problem?.message, store.session.failure].filter(Boolean);
    return (
      messages.length > 0 &&
      element(
        "ul",
        { class: "messages frame-notes" },
        messages.map((message) =>
          element(
            "li",
            { class: "message warn" },
            states.icon("warning"),
            element(
              "div",
              {},
              message,
              message === problem?.message && problem.hint && element("span", { class: "hint" }, ` ${problem.hint}`),
            ),
          ),
        ),
      )
    );
  }

  function signIn() {
    return element(
      "form",
      { class: "sign-in panel", onsubmit: submitCode },
      logo(),
      element("h1", { tabindex: -1 }, "Sign in"),
      element("p", {}, "The terminal where ", element("code", {}, "platform ui"), " runs shows a code."),
      store.session.wrongCode &&
        element(
          "p",
          { class: "message bad", id: "wrong-code" },
          states.icon("error"),
          "This code is not right, or of an earlier run: copy that of the terminal.",
        ),
      store.session.failure && element("p", { class: "message warn" }, states.icon("warning"), store.session.failure),
      element("label", { for: "code" }, "Code"),
      // It stays, with what is typed, where a message above it comes or goes.
      element("input", {
        id: "code",
        "data-key": "code",
        type: "password",
        autocomplete: "off",
        required: true,
        spellcheck: "false",
        "aria-describedby": store.session.wrongCode ? "wrong-code" : null,
        "aria-invalid": store.session.wrongCode ? "true" : null,
      }),
      element("button", { class: "primary" }, "Sign in"),
    );
  }

  function submitCode(event) {
    event.preventDefault();
    connection.useCode(document.getElementById("code").value.trim());
    app.start();
  }

  function announce(message) {
    dom.update(document.getElementById("status"), message);
  }

  // Read out when problems come or go, and not more often than each 10 s.
  function announceProblems() {
    if (!store.documents.status) return;
    const { namespace, environment } = store.session.environment;
    if (announcedEnvironment !== `${namespace}/${environment}`) {
      // Those of another environment neither come nor go.
      announcedEnvironment = `${namespace}/${environment}`;
      announcedProblems = null;
      announcedAt = 0;
    }
    const problems = store
      .services()
      .filter((row) => row.state === "failing")
      .map((row) => row.service);
    const names = problems.join(", ");
    if (names === announcedProblems || Date.now() - announcedAt < ANNOUNCE_INTERVAL_MS) return;
    if (announcedProblems !== null || names)
      announce(names ? `Failing: ${text.shorten(names, 200)}` : "No service is failing any more.");
    announcedProblems = names;
    announcedAt = Date.now();
  }

  return { header, signIn, announce, announceProblems };
})();
