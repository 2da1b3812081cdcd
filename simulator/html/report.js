"use strict";
// Sorts and filters the table of layouts. What is chosen stands behind the page's address
// (#sort=-mfu&filter=tp<=8), so that it can be sent along. Without this script the table is whole,
// in the order of the ranking.
(() => {
  const table = document.getElementById("layouts");
  if (!table) return;
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const heads = Array.from(table.tHead.rows[0].cells);
  const keys = heads.map((head) => head.dataset.key || "");
  const tools = document.getElementById("layout-tools");
  const input = document.getElementById("layout-filter");
  const count = document.getElementById("layout-count");

  const numberIn = (row, column) => {
    const value = row.cells[column].dataset.v;
    return value === undefined ? NaN : Number(value);
  };
  const textIn = (row, column) => row.cells[column].textContent.trim().toLowerCase();

  // What a word asks of a row: {test} or {wrong}. A word is KEY OPERATOR VALUE, or text to find.
  const condition = (word) => {
    const parts = /^([a-z_]+)(<=|>=|!=|<|>|=|:)(.+)$/.exec(word);
    if (!parts) return { test: (row) => row.textContent.toLowerCase().includes(word) };
    const [, key, operator, value] = parts;
    const column = keys.indexOf(key);
    if (column < 0) return { wrong: `no column ${key}` };
    const wanted = Number(value);
    const compares = {
      "<": (a, b) => a < b,
      "<=": (a, b) => a <= b,
      ">": (a, b) => a > b,
      ">=": (a, b) => a >= b,
      "=": (a, b) => a === b,
      ":": (a, b) => a === b,
      "!=": (a, b) => a !== b,
    };
    const hasNumbers = rows.some((row) => !Number.isNaN(numberIn(row, column)));
    if (hasNumbers) {
      if (Number.isNaN(wanted)) return { wrong: `${value} is not a number` };
      return { test: (row) => compares[operator](numberIn(row, column), wanted) };
    }
    if (operator === ":") return { test: (row) => textIn(row, column).includes(value) };
    if (operator === "=") return { test: (row) => textIn(row, column) === value };
    if (operator === "!=") return { test: (row) => textIn(row, column) !== value };
    return { wrong: `${key} has words: use : = or !=` };
  };

  const filter = (text) => {
    const conditions = text.toLowerCase().split(/\s+/).filter(Boolean).map(condition);
    const wrong = conditions.find((each) => each.wrong);
    input.setAttribute("aria-invalid", wrong ? "true" : "false");
    if (wrong) {
      count.textContent = wrong.wrong;
      return;
    }
    let shown = 0;
    for (const row of rows) {
      row.hidden = !conditions.every((each) => each.test(row));
      if (!row.hidden) shown += 1;
    }
    count.textContent = shown === rows.length ? `${shown} layouts` : `${shown} of ${rows.length}`;
  };

  // Rows without a number come last in both directions; equal rows keep the ranking's order.
  const sort = (key, falling) => {
    const column = keys.indexOf(key);
    if (column < 0) return;
    const sign = falling ? -1 : 1;
    const order = rows.map((row, rank) => ({ row, rank, number: numberIn(row, column) }));
    const hasNumbers = order.some((each) => !Number.isNaN(each.number));
    order.sort((a, b) => {
      if (!hasNumbers) {
        const first = textIn(a.row, column);
        const second = textIn(b.row, column);
        if (first !== second) return first < second ? -sign : sign;
      } else if (Number.isNaN(a.number) !== Number.isNaN(b.number)) {
        return Number.isNaN(a.number) ? 1 : -1;
      } else if (a.number !== b.number && !Number.isNaN(a.number)) {
        return sign * (a.number - b.number);
      }
      return a.rank - b.rank;
    });
    for (const each of order) body.append(each.row);
    heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  };

  const state = { sort: "", filter: "" };
  const remember = () => {
    const words = new URLSearchParams();
    if (state.sort) words.set("sort", state.sort);
    if (state.filter) words.set("filter", state.filter);
    history.replaceState(null, "", words.size ? `#${words}` : location.pathname);
  };
  const apply = () => {
    const falling = state.sort.startsWith("-");
    sort(state.sort.replace(/^-/, "") || keys[0], falling);
    filter(state.filter);
  };
  const recall = () => {
    const words = new URLSearchParams(location.hash.slice(1));
    state.sort = words.get("sort") || "";
    state.filter = words.get("filter") || "";
    input.value = state.filter;
    apply();
  };

  heads.forEach((head, i) => {
    if (!keys[i]) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      state.sort = state.sort === keys[i] ? `-${keys[i]}` : keys[i];
      apply();
      remember();
    });
  });
  input.addEventListener("input", () => {
    state.filter = input.value;
    filter(state.filter);
    remember();
  });
  window.addEventListener("hashchange", recall);
  tools.hidden = false;
  recall();
})();
