// Owns the first view of a cluster: its environments, with the number of services in each state.
"use strict";

const environments = (() => {
  const { element } = dom;

  function rows() {
    return store.session.environments ?? store.session.page?.environments ?? [];
  }

  function render() {
    const content = rows().length
      ? parts.table("Environments, scrolls", [["Environment"], ["Namespace"], ["Services", "wide"]], rows().map(row))
      : parts.empty("The cluster has no environments.");
    return [element("div", { class: "page-head" }, element("h1", { tabindex: -1 }, "Environments")), content];
  }

  function row({ namespace, environment, services = {} }) {
    const counted = states.ORDER.filter((state) => services[state]);
    return {
      key: `${namespace}/${environment}`,
      cells: [
        element("a", { href: routes.toEnvironment(namespace, environment) }, environment),
        namespace,
        element(
          "ul",
          { class: "counts" },
          counted.map((state) =>
            element(
              "li",
              { class: `state ${states.look(state).tone}` },
              states.icon(state),
              element("span", {}, `${services[state]} ${states.look(state).label}`),
            ),
          ),
        ),
      ],
    };
  }

  return { title: () => "Environments", render };
})();
