/* The registry of views.

   echolearn.views.register({
     name: "speech",                       what the view is called
     rank: 10,                             the largest rank among those that accept is shown (default 0)
     accepts(model) -> bool,               asked for every model of the page; a view needs all of them
     mount(root, models),                  puts elements into root; models: from createModel, with .name and .extra
   })
   A view is mounted once. What views need beside the plan is in model.extra, as the Python side put it there. */
"use strict";
(() => {
  const registered = [];

  function register(view) {
    registered.push({ rank: 0, ...view });
  }

  /** Return the view that shows these models, or undefined. */
  function choose(models) {
    return registered.filter((view) => models.every((model) => view.accepts(model))).sort((a, b) => b.rank - a.rank)[0];
  }

  globalThis.echolearn.views = { register, choose, registered };
})();
