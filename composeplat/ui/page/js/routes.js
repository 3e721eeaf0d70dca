// Owns the places of the page, which are in the fragment of its address: #/service/web, #/logs?service=web.
// In a view of a cluster, those of an environment begin with #/e/NAMESPACE/ENVIRONMENT.
"use strict";

const routes = (() => {
  const NAMES = ["", "service", "logs", "changes", "history", "events", "file", "variables"];

  let entered = parse(location.hash);

  // The address changes before its event comes. What is drawn between the two belongs to the place before.
  function enter() {
    entered = parse(location.hash);
  }

  function current() {
    return entered;
  }

  // A route is {hash, name, argument, query, namespace, environment}; its name is "unknown" if there is no such place.
  function parse(hash) {
    const [path, query = ""] = splitOnce(hash.replace(/^#\/?/, ""), "?");
    const steps = path.split("/").map(decode);
    const route = { hash, name: "", argument: "", query: new URLSearchParams(query), namespace: "", environment: "" };
    if (steps[0] === "e" && steps.length >= 3) [, route.namespace, route.environment] = steps.splice(0, 3);
    const [name = "", ...rest] = steps;
    route.name = NAMES.includes(name) ? name : "unknown";
    route.argument = rest.join("/");
    return route;
  }

  function splitOnce(value, separator) {
    const index = value.indexOf(separator);
    return index < 0 ? [value] : [value.slice(0, index), value.slice(index + 1)];
  }

  function decode(step) {
    try {
      return decodeURIComponent(step);
    } catch {
      return step;
    }
  }

  // Half a character, as a broken text may have, can't be in an address.
  function encode(step) {
    return encodeURIComponent(step.replace(/\p{Cs}/gu, "\ufffd"));
  }

  // The address of a place in the environment that is shown.
  function to(name, argument = "", query = {}) {
    const { namespace, environment } = current();
    const prefix = namespace ? ["e", namespace, environment] : [];
    const steps = [...prefix, name, ...(argument ? argument.split("/") : [])].map(encode);
    const search = new URLSearchParams(
      Object.entries(query).flatMap(([key, values]) => [values].flat().map((value) => [key, value])),
    );
    return `#/${steps.join("/")}${search.size ? `?${search}` : ""}`;
  }

  function toPlace(place) {
    return to("file", place.file, { line: place.line });
  }

  function toEnvironment(namespace, environment) {
    return `#/e/${encode(namespace)}/${encode(environment)}/`;
  }

  return { enter, current, to, toPlace, toEnvironment };
})();
