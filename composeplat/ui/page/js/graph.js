// Owns the picture of the services and what ties them together, from coordinates that the document has.
// Services and endpoints are links, a service with its state in its name; the others are pictures with a name.
"use strict";

const graph = (() => {
  const { element, svg } = dom;
  const MARGIN = 16;
  const MIN_SCALE = 0.85;
  const LINE_HEIGHT = 18;
  const ROUND = { endpoint: 20, volume: 14, network: 0 };
  const CHAR_WIDTH = 6.9;
  const MAX_LABEL_CHARS = 20;
  const LABEL_WIDTH = 90;
  const LABEL_HEIGHT = 13;
  const LEGEND = ["endpoint", "service", "provider", "volume", "network"];

  function view() {
    const data = store.documents.definition?.graph;
    if (!data?.nodes?.length) return null;
    const rows = new Map(store.services().map((row) => [row.service, row]));
    const width = data.width + 2 * MARGIN;
    const height = data.height + 2 * MARGIN;
    const picture = svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        width,
        height,
        class: "graph",
        role: "group",
        "aria-label": "Graph of the services",
      },
      svg(
        "g",
        { transform: `translate(${MARGIN} ${MARGIN})` },
        data.edges.map((edge) => line(edge, rows)),
        svg("g", {}, labels(data.edges)),
        data.nodes.map((node) => box(node, rows)),
      ),
    );
    // It shrinks to the width of the page as long as its texts can be read.
    picture.style.minWidth = `${Math.round(width * MIN_SCALE)}px`;
    return parts.section(
      "Graph",
      { id: "graph", aside: legend(data.nodes) },
      parts.scrolled("Graph, scrolls", picture),
    );
  }

  function legend(nodes) {
    const kinds = LEGEND.filter((kind) => nodes.some((node) => node.kind === kind));
    return element(
      "ul",
      { class: "legend" },
      kinds.map((kind) =>
        element("li", {}, element("span", { class: `swatch kind-${kind}`, "aria-hidden": "true" }), kind),
      ),
    );
  }

  function box(node, rows) {
    const row = node.kind === "service" ? rows.get(node.name) : null;
    const fingerprint = JSON.stringify([node, row?.state, row?.ready, row?.desired]);
    return dom.lazy(svg(linkOf(node) ? "a" : "g"), node.key, fingerprint, () => drawnBox(node, row));
  }

  function drawnBox(node, row) {
    const tone = row ? states.look(row.state).tone : "";
    const attributes = {
      class: `node kind-${node.kind} ${tone}`,
      transform: `translate(${node.x} ${node.y})`,
      "data-key": node.key,
    };
    const content = [
      // The name of the link, and its tooltip.
      svg("title", {}, accessibleName(node, row)),
      svg("rect", { width: node.width, height: node.height, rx: ROUND[node.kind] ?? 8, class: "box" }),
      row && mark(node, row),
      lines(node),
    ];
    const link = linkOf(node);
    return link ? svg("a", { ...attributes, ...link }, content) : svg("g", { ...attributes, role: "img" }, content);
  }

  // On the corner of the box, where no name is.
  function mark(node, row) {
    const attributes = { transform: `translate(${node.width - 10} -7)`, class: "mark" };
    return svg("g", attributes, svg("circle", { cx: 8, cy: 8, r: 8.5, class: "ground" }), states.markPath(row.state));
  }

  // A service leads to its view, an endpoint to its address.
  function linkOf(node) {
    if (node.kind === "service") return { href: routes.to("service", node.name) };
    const url = node.kind === "endpoint" && node.details.find(text.isWebAddress);
    return url ? { href: url, target: "_blank", rel: "noopener noreferrer" } : null;
  }

  function accessibleName(node, row) {
    if (!row) return [node.name, node.kind, ...node.details].join(", ");
    return [node.name, "service", states.look(row.state).label, `${row.ready} of ${row.desired}`, ...node.details].join(
      ", ",
    );
  }

  function lines(node) {
    const most = Math.max(6, Math.floor((node.width - 20) / CHAR_WIDTH));
    return [node.name, ...node.details].map((content, index) =>
      svg(
        "text",
        { x: node.width / 2, y: 23 + index * LINE_HEIGHT, class: index ? "detail" : "name" },
        text.shorten(content, index ? most : most - 2),
      ),
    );
  }

  function line(edge, rows) {
    const target = edge.target.startsWith("service/") ? rows.get(edge.target.slice("service/".length)) : null;
    const isWaiting = target?.state === "failing";
    const fingerprint = JSON.stringify([edge.points, isWaiting]);
    return dom.lazy(svg("g"), `${edge.source} ${edge.target}`, fingerprint, () => drawnLine(edge, isWaiting));
  }

  function drawnLine(edge, isWaiting) {
    const [[startX, startY], ...others] = edge.points;
    let path = `M${startX} ${startY}`;
    let [x, y] = [startX, startY];
    for (const [toX, toY] of others) {
      const middle = (x + toX) / 2;
      path += `C${middle} ${y} ${middle} ${toY} ${toX} ${toY}`;
      [x, y] = [toX, toY];
    }
    // A marker would need an address, which a base element could change: the tip is a path of its own.
    return svg(
      "g",
      {
        class: `edge ${isWaiting ? "bad" : ""}`,
        "aria-hidden": "true",
        "data-key": `${edge.source} ${edge.target}`,
      },
      svg("path", { d: path, class: "line" }),
      svg("path", { d: `M${x - 7} ${y - 4} ${x} ${y} ${x - 7} ${y + 4}`, class: "line" }),
    );
  }

  // A label is in the middle of the first part of its line, and below those that are there already.
  function labels(edges) {
    const placed = [];
    return edges.filter((edge) => edge.label).map((edge) => label(edge, placed));
  }

  function label(edge, placed) {
    const [[startX, startY], [toX, toY]] = edge.points;
    const x = (startX + toX) / 2;
    let y = (startY + toY) / 2 - 5;
    const isTaken = () =>
      placed.some((other) => Math.abs(other.x - x) < LABEL_WIDTH && Math.abs(other.y - y) < LABEL_HEIGHT);
    while (isTaken()) y += LABEL_HEIGHT;
    placed.push({ x, y });
    const shown = text.shorten(edge.label, MAX_LABEL_CHARS);
    return svg("text", { x, y, class: "edge-label", "aria-hidden": "true" }, svg("title", {}, edge.label), shown);
  }

  return { view };
})();
