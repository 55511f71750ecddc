/* Runs a page of models in Node, without a browser: `node page_in_node.js PAGE`, with [function, argument] as JSON on
   standard input; the value of the function is printed as JSON. Elements keep their text and draw nothing. */
"use strict";
const fs = require("fs");
const vm = require("vm");

const nothing = () => undefined;
const drawing = new Proxy({}, {
  get: (kept, name) => (name in kept ? kept[name] : name === "measureText" ? (text) => ({ width: 7 * text.length })
    : /ImageData$/.test(name) ? (width, height) => ({ data: new Uint8ClampedArray(4 * width * height) }) : nothing),
});

class Element {
  constructor(tag) {
    Object.assign(this, { tag, children: [], dataset: {}, style: {}, attributes: {}, value: "", width: 800, height: 200 });
    this.classList = { add: nothing, remove: nothing, toggle: nothing, contains: () => false };
    for (const name of ["addEventListener", "removeEventListener", "focus", "remove", "removeAttribute", "scrollIntoView"]) this[name] = nothing;
  }

  append(...children) { this.children.push(...children.filter((child) => child !== "")); }

  replaceChildren(...children) { this.children = children; }

  setAttribute(name, value) { this.attributes[name] = value; }

  getAttribute(name) { return this.attributes[name] ?? null; }

  getContext() { return drawing; }

  getBoundingClientRect() { return { left: 0, top: 0, width: 800, height: 200 }; }

  get clientWidth() { return 800; }

  get textContent() { return this.children.map((child) => (child instanceof Element ? child.textContent : String(child))).join(""); }

  set textContent(text) { this.children = [text]; }

  all() { return this.children.flatMap((child) => (child instanceof Element ? [child, ...child.all()] : [])); }

  querySelector(what) {
    return this.all().find((e) => e.tag === what || (what[0] === "." && (e.className || "").split(" ").includes(what.slice(1))));
  }
}

const page = fs.readFileSync(process.argv[2], "utf8"), named = new Map();
const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map((found) => found[1]);
const element = (id) => named.get(id) || named.set(id, new Element("div")).get(id);
element("payload").textContent = page.match(/<script[^>]*id="payload"[^>]*>([\s\S]*?)<\/script>/)[1];
const root = new Element("html");
Object.assign(globalThis, {
  document: {
    documentElement: root, body: root, createElement: (tag) => new Element(tag), getElementById: element,
    addEventListener: nothing, createElementNS: (_, tag) => new Element(tag),
  },
  window: globalThis, addEventListener: nothing, devicePixelRatio: 1, requestAnimationFrame: (draw) => setTimeout(draw),
  getComputedStyle: () => ({ getPropertyValue: () => "#888888" }),
  matchMedia: () => ({ matches: false, addEventListener: nothing }),
  ResizeObserver: class { observe() {} disconnect() {} }, MutationObserver: class { observe() {} disconnect() {} },
});
for (const script of scripts) vm.runInThisContext(script);
const [code, argument] = JSON.parse(fs.readFileSync(0, "utf8"));
Promise.resolve(vm.runInThisContext(`(${code})`)(argument)).then((value) => {
  fs.writeSync(1, JSON.stringify(value === undefined ? null : value));
  process.exit(0);
});
