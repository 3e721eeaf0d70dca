const element = (name, text) => Object.assign(document.createElement(name), { textContent: text });

function row(product) {
  const line = element("li");
  const count = element("span", `ordered ${product.ordered}`);
  const order = element("button", "Order");
  order.setAttribute("aria-label", `Order ${product.name}`);
  order.addEventListener("click", async () => {
    const answer = await fetch(`/api/orders/${product.name}`, { method: "POST" });
    count.textContent = `ordered ${(await answer.json()).ordered}`;
  });
  line.append(element("span", product.name), count, order);
  return line;
}

async function show() {
  const page = await fetch("/", { method: "HEAD" });
  const shop = await (await fetch("/api/shop")).json();
  const servers = [page.headers.get("server"), ...shop.servers].filter(Boolean);
  document.getElementById("greeting").textContent = shop.greeting;
  document.getElementById("products").replaceChildren(...shop.products.map(row));
  document.getElementById("state").textContent = `Visit ${shop.visits}. Served by ${servers.join(", ")}.`;
}

show().catch((error) => { document.getElementById("state").textContent = `The API does not answer: ${error.message}`; });
