/* Placeholder of the view of classifiers and regressors. */
"use strict";
globalThis.echolearn.views.register({
  name: "sequence",
  accepts: () => true,
  mount(root, models) { root.append(globalThis.echolearn.ui.card("Model", models.map((m) => m.name).join())); },
});
