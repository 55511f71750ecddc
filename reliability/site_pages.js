// Return what is broken on the open page, one line each.
() => {
  const found = new Set();
  const shown = text => (text || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX);

  // What stands out of the page, or is cut off because nothing around it scrolls.
  const width = document.documentElement.scrollWidth;
  if (width > window.innerWidth + 1) found.add(`the page is ${width} pixels wide`);
  for (const e of document.querySelectorAll("article :is(table, pre, img, math, p, li, dt, dd, h1, h2, h3)")) {
    const box = e.getBoundingClientRect();
    if (!box.width || !box.height) continue;
    let inside = scrolls(e);
    for (let up = e; up.tagName !== "ARTICLE"; up = up.parentElement) inside = inside || scrolls(up);
    const wide = box.right > window.innerWidth + 1 || (e.clientWidth && e.scrollWidth > e.clientWidth + 2);
    if (!inside && wide) found.add(`cut off: ${e.tagName.toLowerCase()}: ${shown(e.textContent || e.src)}`);
  }

  for (const e of document.querySelectorAll("article img")) {
    if (!e.naturalWidth) found.add(`a picture that does not load: ${e.src}`);
    if (!e.hasAttribute("alt")) found.add(`a picture without a description: ${e.src}`);
  }

  // Text whose contrast with its background is lower than WCAG 2.1 AA asks.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const linear = v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const luminance = c => 0.2126 * linear(c[0] / 255) + 0.7152 * linear(c[1] / 255) + 0.0722 * linear(c[2] / 255);
  const background = e => {
    for (; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] > 250) return colour;
    }
    return rgba("white");
  };
  const article = document.querySelector("article") || document.createElement("article"); // the search page has none
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  const pale = new Set();
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement, style = getComputedStyle(e);
    if (!walker.currentNode.textContent.trim() || !e.offsetWidth || style.visibility === "hidden") continue;
    const a = luminance(rgba(style.color)), b = luminance(background(e)), size = parseFloat(style.fontSize);
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
    if (contrast < (large ? 3 : 4.5)) pale.add(`contrast ${contrast.toFixed(1)}: ${shown(walker.currentNode.textContent)}`);
  }
  return [...found, ...[...pale].slice(0, 5)];
}
