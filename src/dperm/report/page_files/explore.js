"use strict";
// Filters, sorting and addresses. A choice stands in the address (#claims?paper=...), so
// that it can be sent to somebody; a link to something hidden shows it.
(() => {
  const VERDICTS = ["reproduced", "in part", "undecided", "not run", "contradicted", "says nothing"];
  const KINDS = ["sentence", "proof", "privacy", "cells", "variant"];
  const ORDERS = {
    paper: row => row.dataset.paper,
    verdict: row => VERDICTS.indexOf(row.dataset.verdict),
    kind: row => KINDS.indexOf(row.dataset.kind),
    place: row => row.querySelector(".place").textContent,
    found: row => "found" in row.dataset ? +row.dataset.found : Infinity,
  };

  class List {
    constructor(form) {
      this.form = form; this.list = document.getElementById(form.dataset.of);
      this.rows = [...this.list.children];
      this.texts = new Map(); this.section = form.closest("section").id;
      this.status = form.closest("section").querySelector("[role=status]");
      form.addEventListener("input", () => this.show(true));
      form.addEventListener("submit", event => event.preventDefault());
      form.addEventListener("reset", () => setTimeout(() => this.show(true)));
    }
    chosen() {
      const all = [...new FormData(this.form)].filter(([, value]) => value.trim());
      const narrowed = all.some(([key]) => key !== "first" && key !== "sort"); // of all claims then
      return narrowed ? all.filter(([key]) => key !== "first") : all;
    }
    text(row) {
      if (!this.texts.has(row)) this.texts.set(row, row.textContent.toLowerCase());
      return this.texts.get(row);
    }
    fits(row, [key, value]) {
      if (key === "sort") return true;
      if (key === "q") return value.toLowerCase().split(/\s+/).every(word => this.text(row).includes(word));
      if (row.cells) return this.cell(row, key, value);
      return (row.dataset[key] || "").split("|").includes(value);
    }
    cell(row, key, value) {
      const text = row.cells[{ set: 0, at: 1, place: 2, method: 3 }[key]].textContent;
      return key === "place" ? text.startsWith(value) : text === value;
    }
    show(written) {
      const chosen = this.chosen(), order = ORDERS[Object.fromEntries(chosen).sort];
      let count = 0;
      for (const row of this.rows) {
        const fits = chosen.every(each => this.fits(row, each));
        row.classList.toggle("hidden", !fits); count += fits;
      }
      const sorted = order ? this.rows.map((row, k) => [order(row), k, row])
        .sort((a, b) => a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] - b[1]).map(each => each[2]) : this.rows;
      this.list.append(...sorted);
      const word = this.list.dataset.word;
      this.status.textContent = count === this.rows.length ? `${count} ${word}` : `${count} of ${this.rows.length} ${word}`;
      if (written) history.replaceState(null, "", `#${this.section}` + (chosen.length ? `?${new URLSearchParams(chosen)}` : ""));
    }
    take(query) {
      this.form.reset();
      if (query && this.form.elements.first) this.form.elements.first.value = "";
      if (query && this.form.elements.place) this.form.elements.place.value = "";
      for (const [key, value] of new URLSearchParams(query)) if (this.form.elements[key]) this.form.elements[key].value = value;
      this.show(false);
    }
  }

  const lists = [...document.querySelectorAll("form[data-of]")].map(form => new List(form));
  function go() {
    const [name, query] = decodeURI(location.hash.slice(1)).split("?");
    const list = lists.find(each => each.section === name);
    if (list && query !== undefined) list.take(query);
    const target = document.getElementById(name);
    if (!target) return;
    if (target.classList.contains("hidden")) lists.forEach(each => { if (each.list.contains(target)) each.take("all"); });
    for (let up = target; up; up = up.parentElement) if (up.matches("details")) up.open = true;
    if (target.matches("details")) { target.open = true; target.querySelector("summary").focus({ preventScroll: true }); }
    target.scrollIntoView();
  }
  addEventListener("hashchange", go);
  lists.forEach(list => list.show(false));
  if (location.hash) go();
})();
