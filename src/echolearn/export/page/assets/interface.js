/* Elements of the page. Texts are always text nodes: nothing that a file holds is ever read as HTML.

   echolearn.ui.make("button", {class: "main", onclick: f, "aria-label": "..."}, child, "text", ...) -> element
   echolearn.ui.card(title, note, ...children) -> section          echolearn.ui.slider({...}) -> {root, input, set}
   echolearn.ui.announcer(root) -> f(text): what a screen reader reads aloud, at most once a second
   echolearn.ui.onTheme(f): called when colours change             echolearn.ui.number(x) -> "0.00123" */
"use strict";
(() => {
  const themes = new Set();
  let counter = 0;

  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (value === null || value === undefined || value === false) continue;
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "class") element.className = value;
      else if (name in element && name !== "list" && typeof value !== "string") element[name] = value;
      else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  }

  const unique = (prefix) => `${prefix}-${++counter}`;

  /** A section with a heading and a line about it. */
  function card(title, note, ...children) {
    const id = unique("heading");
    return make("section", { class: "card", "aria-labelledby": id }, make("h2", { id }, title),
      note ? make("p", { class: "note" }, note) : null, ...children);
  }

  function button(text, onclick, more = {}) {
    return make("button", { type: "button", onclick, ...more }, text);
  }

  /** A labelled choice; options: [[value, text], ...]. */
  function select(label, options, onchange) {
    const input = make("select", { id: unique("select"), onchange: () => onchange(input.value) },
      options.map(([value, text]) => make("option", { value: String(value) }, text)));
    return { root: make("label", { class: "field", for: input.id }, make("span", {}, label), input), input };
  }

  /** A labelled slider that shows its value; `shown` turns the value into text. */
  function slider({ label, min, max, step, value, shown = number, oninput }) {
    const output = make("output", {}, shown(value));
    const input = make("input", { type: "range", id: unique("slider"), min: String(min), max: String(max), step: String(step), "aria-label": label });
    const refresh = () => {
      output.textContent = shown(Number(input.value));
      input.setAttribute("aria-valuetext", output.textContent);
    };
    input.value = String(value);
    input.addEventListener("input", () => { refresh(); oninput(Number(input.value)); });
    refresh();
    const root = make("label", { class: "field slider", for: input.id }, make("span", {}, label, " ", output), input);
    return { root, input, set(to) { input.value = String(to); refresh(); } };
  }

  /** A text for screen readers alone, which changes at most once a second. */
  function announcer(root, properties = {}) {
    const element = make("p", { class: "quiet", "aria-live": "polite", ...properties });
    root.append(element);
    let waiting = null, last = -Infinity;
    return (text) => {
      clearTimeout(waiting);
      const put = () => { last = performance.now(); if (element.textContent !== text) element.textContent = text; };
      const rest = 1000 - (performance.now() - last);
      if (rest <= 0) put();
      else waiting = setTimeout(put, rest);
    };
  }

  /** A message in a plain sentence; kind "error" or none. An empty text hides it. */
  function message(root) {
    const element = make("p", { class: "message", role: "status", hidden: true });
    root.append(element);
    return (text, kind = "") => {
      element.hidden = !text;
      element.className = `message ${kind}`.trim();
      element.textContent = text;
    };
  }

  /** Return a number in as few characters as tell it apart. */
  function number(x) {
    if (!Number.isFinite(x)) return Number.isNaN(x) ? "not a number" : x > 0 ? "∞" : "−∞";
    const size = Math.abs(x);
    const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? x.toExponential(1) : String(Number(x.toPrecision(3)));
    return text.replace("-", "−");
  }

  const percent = (share) => `${share > 0 && share < 0.001 ? "<0.1" : Number((100 * share).toFixed(share < 0.1 ? 1 : 0))} %`;

  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };

  function tellTheme() { for (const listener of themes) listener(isDark()); }

  function themeButton() {
    const text = () => (isDark() ? "Light colours" : "Dark colours");
    const element = button(text(), () => {
      document.documentElement.dataset.theme = isDark() ? "light" : "dark";
      tellTheme();
    }, { class: "small" });
    themes.add(() => { element.textContent = text(); });
    return element;
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellTheme);

  globalThis.echolearn.ui = {
    make, card, button, select, slider, announcer, message, number, percent, unique, isDark, themeButton,
    onTheme(listener) { themes.add(listener); },
    /** The names of the classes or outputs of a model. */
    outputNames: (model) => Array.from({ length: model.outputs }, (_, k) => model.classes[k] ?? (model.outputs === 1 ? "value" : `value ${k + 1}`)),
    featureNames: (model) => Array.from({ length: model.inputs }, (_, k) => model.features[k] ?? `input ${k + 1}`),
  };
})();
