"use strict";
// Sorts and filters the table of layouts. What is chosen stands behind the page's address
// (#sort=-mfu&filter=tp<=8), so that it can be sent along. Without this script the table is whole,
// in the order of the ranking.
(() => {
  const table = document.getElementById("layouts");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = Array.from(table.tHead.rows[0].cells);
  const keys = heads.map((head) => head.dataset.key);
  const tools = document.getElementById("layout-tools");
  const input = document.getElementById("layout-filter");
  const count = document.getElementById("layout-count");

  // Texts are compared and measured as in parse_filter(): by the bytes of UTF-8.
  const bytesOf = (text) =>
    Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");

  // Names and words of the language, and the values of each row by column.
  const data = JSON.parse(document.getElementById("layouts-data").textContent);
  const columns = new Map(data.columns.map(({ key, words }, index) => [key, { words, index }]));
  const valueOf = (value) => (typeof value === "string" ? bytesOf(value) : value ?? NaN);
  const rows = Array.from(body.rows, (element, rank) => ({
    element,
    rank,
    values: data.rows[rank].values.map(valueOf),
    traits: data.rows[rank].traits,
  }));

  const problem = (id, subject, other) =>
    data.problems[id].replace(/\{([01])\}/g, (_, which) => (which === "0" ? subject : other));
  const quoted = (text) => text.slice(0, 24).replace(/[^ -\x7f]/g, "?");

  // As edit_distance() of planner/spec/text/nearest.cc.
  const distance = (a, b) => {
    const table = [Array.from({ length: b.length + 1 }, (_, j) => j)];
    for (let i = 1; i <= a.length; i += 1) {
      table.push([i]);
      for (let j = 1; j <= b.length; j += 1) {
        const replaced = table[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
        let least = Math.min(table[i - 1][j] + 1, table[i][j - 1] + 1, replaced);
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
          least = Math.min(least, table[i - 2][j - 2] + 1);
        }
        table[i].push(least);
      }
    }
    return table[a.length][b.length];
  };
  const unknown = (word) => {
    const most = Math.max(1, Math.min(Math.floor(word.length / 3), 3));
    let best = most + 1;
    let near = "";
    for (const name of [...columns.keys(), ...data.traits]) {
      if (Math.abs(name.length - word.length) > most) continue;
      const far = distance(word, name);
      if (far < best) [best, near] = [far, name];
    }
    return problem(near ? "misspelt" : "unknown", quoted(word), near);
  };

  // As parse_number() of planner/spec/text/number.h; NaN for what is none.
  const numberOf = (text) => {
    if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return NaN;
    const number = Number(text);
    const vanished = number === 0 && /[1-9]/.test(text.replace(/e.*/i, ""));
    return Number.isFinite(number) && !vanished ? number : NaN;
  };

  const kCompares = {
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b,
    "=": (a, b) => a === b,
    "==": (a, b) => a === b,
    ":": (a, b) => a === b,
    "!=": (a, b) => a !== b,
  };
  // What a word asks of a row: {test} or {wrong}.
  const condition = (word) => {
    const at = word.slice(1).search(/[<>=!:]/) + 1;
    if (at === 0) {
      const opposite = word[0] === "!";
      const name = word.slice(opposite ? 1 : 0);
      if (data.traits.includes(name)) {
        return { test: (row) => row.traits.includes(name) !== opposite };
      }
      const column = columns.get(name);
      if (!column) return { wrong: unknown(name) };
      return { wrong: problem(column.words ? "no_words" : "no_number", name) };
    }
    const key = word.slice(0, at);
    const column = columns.get(key);
    if (!column) return { wrong: unknown(key) };
    const found = /^(<=|>=|!=|==|<|>|=|:)/.exec(word.slice(at));
    if (!found) return { wrong: problem("operator", quoted(word)) };
    const operator = found[0];
    const value = word.slice(at + operator.length);
    const compare = kCompares[operator];
    if (column.words) {
      if (/[<>]/.test(operator)) return { wrong: problem("words", key) };
      if (!value) return { wrong: problem("no_words", key) };
      const wanted = value === "-" ? "none" : value;
      if (operator === ":") return { test: (row) => row.values[column.index].includes(wanted) };
      return { test: (row) => compare(row.values[column.index], wanted) };
    }
    const wanted = numberOf(value);
    if (Number.isNaN(wanted)) {
      return { wrong: problem("number", key, value ? quoted(value) : "nothing") };
    }
    return { test: (row) => compare(row.values[column.index], wanted) };
  };

  // Conditions before one that is wrong hold, as in the viewer.
  const filter = (text) => {
    const conditions = bytesOf(text).split(" ").filter(Boolean).map(condition);
    const first = conditions.findIndex((each) => each.wrong);
    const tests = first < 0 ? conditions : conditions.slice(0, first);
    input.setAttribute("aria-invalid", first < 0 ? "false" : "true");
    let shown = 0;
    for (const row of rows) {
      row.element.hidden = !tests.every((each) => each.test(row));
      if (!row.element.hidden) shown += 1;
    }
    const counted = shown === rows.length ? `${shown} layouts` : `${shown} of ${rows.length}`;
    count.textContent = first < 0 ? counted : conditions[first].wrong;
  };

  // Rows without a number come last in both directions; equal rows keep the ranking's order.
  const sort = (key, falling) => {
    const head = keys.indexOf(key);
    if (head < 0) return;
    const { index } = columns.get(key);
    const sign = falling ? -1 : 1;
    const order = rows.slice();
    order.sort((one, other) => {
      const [a, b] = [one.values[index], other.values[index]];
      if (Number.isNaN(a) !== Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
      if (a < b) return -sign;
      if (a > b) return sign;
      return one.rank - other.rank;
    });
    for (const each of order) body.append(each.element);
    heads.forEach((each, i) => {
      if (i === head) each.setAttribute("aria-sort", falling ? "descending" : "ascending");
      else each.removeAttribute("aria-sort");
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
