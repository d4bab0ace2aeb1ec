"use strict";
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
  document.getElementById("tools").hidden = false;
  show();
})();
