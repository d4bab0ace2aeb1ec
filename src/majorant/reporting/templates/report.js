"use strict";
(() => {
  /* A table that is wider than its region says so, and fades at the side where there is more. */
  for (const region of document.querySelectorAll(".scroll")) {
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "↔ wider than the screen: scroll sideways";
    hint.hidden = true;
    region.before(hint);
    const mark = () => {
      const beyond = region.scrollWidth - region.clientWidth;
      hint.hidden = beyond <= 1;
      region.classList.toggle("fade", region.scrollLeft < beyond - 1);
    };
    region.addEventListener("scroll", mark, { passive: true });
    new ResizeObserver(mark).observe(region);
    new ResizeObserver(mark).observe(region.firstElementChild);
  }
})();
(() => {
  const folded = Array.from(document.querySelectorAll("details"));
  addEventListener("beforeprint", () => folded.forEach((part) => { part.dataset.open = part.open; part.open = true; }));
  addEventListener("afterprint", () => folded.forEach((part) => { part.open = part.dataset.open === "true"; }));
  for (const link of document.querySelectorAll("nav a")) {
    link.addEventListener("click", (event) => {
      const section = document.getElementById(link.hash.slice(1));
      section.querySelectorAll("details").forEach((part) => { part.open = true; });
      /* In the frame of a notebook, the address of a link is that of the notebook. */
      if (location.protocol !== "about:") return;
      event.preventDefault();
      section.scrollIntoView();
    });
  }
})();
(() => {
  const table = document.getElementById("coefficient-table");
  if (!table) return;
  const body = table.tBodies[0], rows = Array.from(body.rows);
  const search = document.getElementById("search"), count = document.getElementById("count");
  const more = document.getElementById("more"), FEW = 25;
  const words = new Intl.Collator(undefined, { numeric: true });
  let all = rows.length <= FEW + 5;

  const number = (text) => {
    const value = Number(text.replace(/−/g, "-").replace(/[,%\s]/g, ""));
    return Number.isNaN(value) ? -Infinity : value;
  };

  const show = () => {
    const wanted = search.value.trim().toLowerCase();
    let found = 0, shown = 0;
    for (const row of body.rows) {
      const hit = !wanted || row.dataset.name.includes(wanted);
      found += hit;
      row.hidden = !hit || (!all && shown >= FEW);
      shown += !row.hidden;
    }
    count.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} shown`;
    more.hidden = found <= shown;
    more.textContent = `Show all ${found.toLocaleString("en")}`;
  };

  const sort = (header, column) => {
    const falling = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", falling ? "descending" : "ascending");
    const value = (row) => row.cells[column].textContent.trim();
    const numeric = header.dataset.sort === "number";
    const keyed = rows.map((row, place) => ({ row, place, key: numeric ? number(value(row)) : value(row) }));
    keyed.sort((a, b) => {
      const order = numeric ? a.key - b.key : words.compare(a.key, b.key);
      return (falling ? -order : order) || a.place - b.place;
    });
    body.append(...keyed.map(({ row }) => row));
    show();
  };

  Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
    if (!header.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => sort(header, column));
  });
  for (const row of rows) row.dataset.name = row.querySelector("th").textContent.toLowerCase();
  search.addEventListener("input", show);
  more.addEventListener("click", () => { all = true; show(); });
  const csv = () => {
    const quoted = (text) => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    const lines = rows.map((row) =>
      [quoted(row.querySelector("th").textContent), ...row.dataset.values.split(" ")].join(","));
    return [JSON.parse(table.dataset.columns).map(quoted).join(","), ...lines, ""].join("\n");
  };
  const copy = document.getElementById("copy");
  const said = (text) => {
    copy.textContent = text;
    setTimeout(() => { copy.textContent = "Copy as CSV"; }, 2000);
  };
  const copyByHand = () => {
    const area = document.createElement("textarea");
    area.value = csv();
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    said(done ? "Copied" : "Copying is blocked");
  };
  copy.addEventListener("click", () => {
    if (!navigator.clipboard) return copyByHand();
    navigator.clipboard.writeText(csv()).then(() => said("Copied"), copyByHand);
  });
  document.getElementById("download").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
    link.download = "coefficients.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  document.getElementById("tools").hidden = false;
  show();
})();
