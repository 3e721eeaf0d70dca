// Owns how the page is written: elements whose texts are only text, and updates that keep the elements that are there.
// Nothing here reads markup, so no text of a log, a file or the cluster can become an element or a script.
"use strict";

const dom = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  // Handlers are properties, so that an update can hand them to the element that stays.
  const HANDLERS = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown", "onscroll", "onclose", "ontoggle"];
  // A person opens and closes these: an update must not.
  const KEPT_ATTRIBUTES = new Set(["open"]);
  const LINK = /^(#|https?:\/\/)/i;

  function element(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
  }

  function svg(tag, attributes = {}, ...children) {
    return fill(document.createElementNS(SVG, tag), attributes, children);
  }

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) setAttribute(node, name, value);
    node.append(...flat(children));
    return node;
  }

  function setAttribute(node, name, value) {
    if (name === "checked") node.checked = Boolean(value);
    if (name === "checked" || value === undefined || value === null || value === false) return;
    // Elements are matched by their keys; a property is read faster than an attribute.
    if (name === "data-key") node.key = `${value}`;
    if (HANDLERS.includes(name)) node[name] = value;
    else if (name !== "href" || LINK.test(value))
      node.setAttribute(name, value === true ? "" : text.visible(`${value}`));
  }

  // An element that is built only if the fingerprint differs from that of the element with this key on the page.
  // Until then an empty one is in its place.
  function lazy(placeholder, key, fingerprint, build) {
    placeholder.key = key;
    placeholder.lazy = { fingerprint, build };
    return placeholder;
  }

  function buildNow(placeholder) {
    const node = placeholder.lazy.build();
    node.fingerprint = placeholder.lazy.fingerprint;
    return node;
  }

  // Build what is left to build in an element that is new on the page.
  function buildAll(node) {
    if (node.lazy) return buildAll(buildNow(node));
    for (const child of node.children ?? [])
      if (child.lazy || child.firstElementChild) child.replaceWith(buildAll(child));
    return node;
  }

  // Lists are spread; nothing, false and empty texts are left out; all else is text.
  function flat(children) {
    return children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false && child !== "")
      .map((child) => (child instanceof Node ? child : document.createTextNode(text.visible(`${child}`))));
  }

  // Give a parent these children. An element that is there already stays, with its focus and its scrolled place.
  function update(parent, ...children) {
    const focused = document.activeElement;
    reconcile(parent, flat(children));
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
  }

  function reconcile(parent, children) {
    const keyed = new Map();
    for (const child of parent.children) if (child.key) keyed.set(child.key, child);
    const kept = new Set();
    let current = parent.firstChild;
    for (const child of children) {
      const found = findMatch(parent, child, keyed, current);
      const match = kept.has(found) ? null : found;
      if (match && match !== child) patch(match, child);
      const shown = match ?? buildAll(child);
      kept.add(shown);
      if (shown === current) current = current.nextSibling;
      // The element before it has moved on or is gone: to move this one would move all that follow, too.
      else if (current && shown === current.nextSibling) current = shown.nextSibling;
      else parent.insertBefore(shown, current);
    }
    for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  }

  function findMatch(parent, child, keyed, current) {
    if (child.parentNode === parent) return child;
    const isMatch = (node) => node.nodeName === child.nodeName && node.key === child.key;
    let found = child.key ? keyed.get(child.key) : current;
    // What is in between has moved on or is gone.
    while (found && !child.key && !isMatch(found)) found = found.nextSibling;
    return found && isMatch(found) ? found : null;
  }

  function patch(old, next) {
    if (next.lazy && next.lazy.fingerprint === old.fingerprint) return;
    const fresh = next.lazy ? buildNow(next) : next;
    old.fingerprint = fresh.fingerprint;
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !KEPT_ATTRIBUTES.has(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (old.getAttribute(name) === value || KEPT_ATTRIBUTES.has(name)) continue;
      // The content policy forbids a style by attribute.
      if (name === "style") old.style.cssText = value;
      else old.setAttribute(name, value);
    }
    // A box that a person has clicked no longer follows its attribute.
    if (old.type === "checkbox") old.checked = fresh.checked;
    for (const name of HANDLERS) if (old[name] !== fresh[name]) old[name] = fresh[name];
    reconcile(old, [...fresh.childNodes]);
  }

  return { element, svg, lazy, update };
})();
