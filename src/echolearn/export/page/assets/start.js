/* Reads the models of the page, and mounts the view that shows them. */
"use strict";
(() => {
  const { createModel, views, ui } = globalThis.echolearn;
  const { make } = ui;
  const NAMES = {
    ESNClassifier: "Classifier", ESNRegressor: "Regressor", ESNForecaster: "Forecaster",
    DeepESNClassifier: "Deep classifier", DeepESNRegressor: "Deep regressor",
  };

  function facts(model) {
    const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
    const layers = model.layers.length / model.stacks;
    const outputs = model.kind === "values" ? count(model.outputs, "value", "values") : count(model.outputs, "class", "classes");
    return [
      NAMES[model.estimator] || model.estimator,
      model.stacks > 1 ? `${model.stacks} networks` : null,
      layers > 1 ? `${layers} layers` : null,
      count(model.units, "unit", "units"), count(model.inputs, "input", "inputs"), outputs, count(model.weights, "weight", "weights"),
    ].filter(Boolean).join(" · ");
  }

  function heading(models) {
    const title = make("h1", {}, models.flatMap((model, i) => [i ? make("span", { class: "versus" }, " beside ") : null, make("span", { class: "name" }, model.name)]));
    const lines = models.map((model) => make("p", { class: "facts" }, models.length > 1 ? make("b", {}, `${model.name}: `) : null, facts(model)));
    return [make("div", { class: "bar" }, make("p", { class: "kicker" }, "echolearn"), ui.themeButton()), title, ...lines];
  }

  function begin() {
    const view = document.getElementById("view");
    view.replaceChildren();
    try {
      const payload = JSON.parse(document.getElementById("payload").textContent);
      const models = payload.models.map((json) => createModel(json));
      globalThis.echolearn.models = models;
      document.getElementById("top").replaceChildren(...heading(models));
      const found = views.choose(models);
      if (!found) throw new Error("This page has no view that shows these models together.");
      found.mount(view, models);
      document.getElementById("bottom").replaceChildren(make("p", {},
        "The network runs in this page. Nothing that you enter, drop or say leaves it: the page cannot make requests."));
      globalThis.echolearn.startedAfter = performance.now(); // milliseconds since the page was opened
      document.documentElement.dataset.ready = found.name;
    } catch (problem) {
      view.append(make("p", { class: "message error", role: "alert" }, `The page could not start: ${problem.message}`));
      document.documentElement.dataset.ready = "failed";
      throw problem;
    }
  }

  begin();
})();
