/* The view of a recogniser: microphone or recording -> what one or two networks hear, phones and words with times, and
   what the networks thought about a stretch. Listening, decoding and drawing are in the other speech_ scripts. */
"use strict";
(() => {
  const { ui, speech, views } = globalThis.echolearn;
  const { make, button } = ui;
  const MOST_SECONDS = 300; // of one recording
  const SLICE = 8000; // samples between two looks at the page while a recording is read
  const SILENT_SECONDS = 3; // of a microphone that gives nothing, before a message is shown
  const SPANS = [50, 100, 150, 200, 300, 450, 600, 900, 1200, 2000, 3000]; // frames that may be seen at once
  const time = (frames) => (frames / 100).toFixed(2);

  class SpeechView {
    constructor(root, models) {
      this.root = root;
      this.models = models;
      this.scene = {
        recording: null, first: 0, span: 600, selection: null, playhead: null,
        select: (selection, options) => this.select(selection, options),
      };
      this.microphone = null;
      this.player = new speech.Player();
      this.panels = [];
      this.build();
      this.open();
    }

    /** Unpack the decoders; everything else waits for them. */
    async open() {
      try {
        if (typeof DecompressionStream === "undefined") {
          throw new Error("This browser is too old for the page; one of 2023 or later is needed.");
        }
        const listeners = await Promise.all(this.models.map((model) => speech.Listener.of(model)));
        this.listeners = listeners;
        this.panels = listeners.map((listener) => this.panel(listener, listeners.length > 1));
        this.stage.replaceChildren(...this.panels.map((panel) => panel.root));
        if (listeners.length > 1) this.stage.after(this.mover.root);
        this.panels.forEach((panel) => this.keys(panel.score.element));
        this.startButton.disabled = this.fileButton.disabled = false;
        this.status(this.invitation());
        this.root.dataset.speech = "ready";
        this.showExample();
      } catch (problem) {
        this.message(problem.message, "error");
        this.root.dataset.speech = "failed";
      }
    }

    /** Recognise the recording that came with the page, if there is one. */
    showExample() {
      const example = this.models[0].extra.example;
      if (!example || !example.bytes) return;
      const read = () => this.readFile(new File([speech.fromBase64(example.bytes)], example.name));
      this.exampleButton = button("The example", read);
      this.fileButton.after(this.exampleButton);
      read();
    }

    invitation() {
      const live = this.listeners.every((listener) => listener.streams);
      return live ? "" : "A network here needs the end of the recording: with the microphone, answers come when you stop.";
    }

    build() {
      this.startButton = button("Start the microphone", () => this.toggle(), { class: "main", disabled: true });
      this.fileInput = make("input", {
        type: "file", accept: "audio/*,.wav,.flac,.ogg,.mp3,.m4a,.sph", class: "quiet", tabindex: "-1", "aria-hidden": "true",
        onchange: () => { if (this.fileInput.files[0]) this.readFile(this.fileInput.files[0]); this.fileInput.value = ""; },
      });
      this.fileButton = button("Choose a recording", () => this.fileInput.click(), { disabled: true });
      this.playButton = button("Play all", () => this.playAll(), { disabled: true });
      this.level = make("span", { class: "level", "aria-hidden": "true", hidden: true }, make("span", {}));
      this.statusText = make("p", { class: "status", role: "status" });
      const controls = make("div", { class: "row" }, this.startButton, this.fileButton, this.fileInput, this.playButton, this.level, this.statusText);
      const card = ui.card("Listen", "Speak, or drop a recording anywhere on the page. Everything is computed here; no sound leaves the page.", controls);
      card.classList.add("drop");
      this.message = ui.message(card);
      this.announce = ui.announcer(card);
      this.stage = make("div", { class: this.models.length > 1 ? "pair" : "single" });
      this.mover = this.buildMover();
      this.thoughtsBody = make("div", {});
      this.thoughts = ui.card(this.models.length > 1 ? "What the networks thought" : "What the network thought", null, this.thoughtsBody);
      this.root.append(card, make("div", { class: this.models.length > 1 ? "" : "beside" }, this.stage, this.thoughts));
      this.dropping(card);
      this.think();
    }

    /** The slider that moves along a long recording, and the buttons that show more or less of it. */
    buildMover() {
      const slider = ui.slider({
        label: "From", min: 0, max: 1, step: 1, value: 0, shown: (frame) => `${time(frame)} s`,
        oninput: (frame) => { this.scene.first = frame; this.following = false; this.redraw(); },
      });
      const less = button("Zoom in", () => this.zoom(-1), { class: "small" });
      const more = button("Zoom out", () => this.zoom(1), { class: "small" });
      const root = make("div", { class: "row mover" }, slider.root, less, more);
      root.hidden = true;
      return { root, slider };
    }

    panel(listener, several) {
      const score = new speech.Score(listener, this.scene);
      const answer = make("p", { class: "answer transcript", dir: "auto" });
      const list = make("ol", { class: "tokens", "aria-label": `Phones that ${listener.model.name} recognised` });
      const words = make("ol", { class: "tokens words", "aria-label": `Words that ${listener.model.name} recognised` });
      const summary = make("summary", {}, listener.wordTokens ? "Words and phones with times" : "Phones with times");
      const details = make("details", { hidden: true }, summary, listener.wordTokens ? words : null, list);
      details.addEventListener("toggle", () => this.lists());
      const note = listener.phoneDecoder ? null : "This file has no decoder, so that each stretch is the likeliest phone of its frames. "
        + "Train with --for recognition for phones and words.";
      const root = ui.card(several ? listener.model.name : "What it recognises", null);
      const about = note && make("p", { class: "note" }, note);
      // Texts of different lengths would put two pictures at different heights: they come below the pictures then.
      const parts = several ? [score.element, answer, about] : [about, answer, score.element, this.mover.root];
      root.append(...parts.filter(Boolean), details);
      return { root, score, listener, answer, list, words, details };
    }

    help() {
      return [
        make("p", { class: "note" }, "Click a phone or a word in the picture, or drag over a stretch, to hear it and to see here which phones were likely."),
        make("p", { class: "note" }, "Keys in the picture: ← → another phone or word, ↑ ↓ phones or words, Enter plays, + − zoom."),
      ];
    }

    status(text) {
      if (this.statusText.textContent !== text) this.statusText.textContent = text;
    }

    // ---------------------------------------------------------------------------------------- sound that comes in

    toggle() {
      if (this.microphone) this.stop();
      else this.listen();
    }

    begin(live) {
      this.player.stop();
      this.scene.recording = new speech.Recording(this.listeners, live);
      Object.assign(this.scene, { first: 0, selection: null, playhead: null, span: this.liveSpan() });
      this.following = true;
      this.think();
      this.mover.root.hidden = true;
      for (const panel of this.panels) {
        panel.score.forget();
        panel.details.hidden = true;
      }
      this.message("");
    }

    liveSpan() {
      const width = this.panels[0].score.element.clientWidth - 60;
      return Math.max(140, Math.min(600, Math.round(width / 1.9)));
    }

    async listen() {
      this.startButton.disabled = true;
      const microphone = new speech.Microphone();
      let resampler = null, seconds = 0, loud = false;
      try {
        await microphone.start((samples, rate) => {
          if (this.microphone !== microphone) return;
          resampler = resampler || new speech.Resampler(rate);
          this.resampler = resampler;
          this.scene.recording.push(resampler.push(samples));
          seconds += samples.length / rate;
          loud = this.showLevel(samples) || loud;
          if (!loud && seconds > SILENT_SECONDS) this.message("The microphone gives nothing but silence; is it muted?");
          else if (loud) this.message("");
          if (this.scene.recording.seconds > MOST_SECONDS) this.stop(`Stopped after ${MOST_SECONDS / 60} minutes, which is as much as the page keeps.`);
          else this.refresh();
        });
        this.begin(true);
        this.microphone = microphone;
        this.startButton.textContent = "Stop";
        this.startButton.classList.add("running");
        this.fileButton.disabled = this.playButton.disabled = true;
        if (this.exampleButton) this.exampleButton.disabled = true;
        this.level.hidden = false;
        this.status("Listening.");
      } catch (problem) {
        microphone.stop();
        this.message(problem.message, "error");
      }
      this.startButton.disabled = false;
    }

    /** Show how loud the microphone is; return whether it gives anything at all. */
    showLevel(samples) {
      let square = 0;
      for (const value of samples) square += value * value;
      const decibels = 10 * Math.log10(square / samples.length + 1e-9);
      this.level.firstChild.style.width = `${Math.max(0, Math.min(100, (decibels - 20) * 1.6))}%`;
      return square > samples.length;
    }

    stop(text = "") {
      const { recording } = this.scene;
      this.microphone.stop();
      this.microphone = null;
      this.level.hidden = true;
      this.startButton.textContent = "Start the microphone";
      this.startButton.classList.remove("running");
      if (this.resampler) recording.push(this.resampler.finish());
      this.resampler = null;
      recording.finish();
      this.message(text || (recording.spectrum.length ? "" : "Nothing was recorded: it was stopped at once."));
      this.ended("");
    }

    /** Recognise a recording, a slice at a time, so that the page stays alive and shows how far it is. */
    async readFile(file) {
      if (this.microphone) this.stop();
      this.root.dataset.recording = "";
      try {
        const { samples, rate, notes } = await speech.readSound(file);
        const resampler = new speech.Resampler(rate);
        let all = samples.length > MOST_SECONDS * rate ? samples.subarray(0, MOST_SECONDS * rate) : samples;
        if (all !== samples) notes.push(`Only the first ${MOST_SECONDS / 60} minutes of ${file.name} are recognised.`);
        all = joined(resampler.push(all), resampler.finish());
        this.begin(false);
        const { recording } = this.scene;
        this.message(notes.join(" "));
        this.scene.span = Math.max(50, Math.min(this.liveSpan() * (innerWidth < 600 ? 1 : 1.25), Math.ceil(all.length / 160)));
        this.following = false;
        for (let at = 0; at < all.length; at += SLICE) {
          recording.push(all.subarray(at, at + SLICE));
          this.status(`Recognising ${file.name}: ${Math.round((100 * at) / all.length)} %`);
          this.refresh();
          await new Promise((done) => { setTimeout(done); });
          if (this.scene.recording !== recording) return; // another one was begun
        }
        recording.finish();
        this.ended(`${file.name}: ${recording.seconds.toFixed(2)} s.`);
      } catch (problem) {
        this.message(problem.message, "error");
        this.status("");
        this.root.dataset.recording = "problem";
      }
    }

    /** Show what there is after another piece of sound. */
    refresh() {
      const { scene } = this;
      if (this.following) scene.first = Math.max(0, scene.recording.spectrum.length - scene.span);
      this.texts();
      this.redraw();
    }

    ended(text) {
      const { scene } = this, frames = scene.recording.spectrum.length;
      this.fileButton.disabled = false;
      if (this.exampleButton) this.exampleButton.disabled = false;
      this.playButton.disabled = frames === 0;
      this.following = false;
      for (const panel of this.panels) panel.details.hidden = frames === 0;
      this.status(text);
      this.move();
      this.texts();
      this.lists();
      this.redraw();
      this.root.dataset.recording = "done";
    }

    dropping(card) {
      const over = (on) => (event) => {
        if (!event.dataTransfer || !Array.from(event.dataTransfer.types).includes("Files")) return;
        event.preventDefault();
        card.classList.toggle("over", on);
      };
      document.addEventListener("dragover", over(true));
      document.addEventListener("dragleave", over(false));
      document.addEventListener("drop", (event) => {
        over(false)(event);
        const file = event.dataTransfer && event.dataTransfer.files[0];
        if (file && this.listeners) this.readFile(file);
      });
    }

    // -------------------------------------------------------------------------------------------- what is seen

    redraw() {
      for (const panel of this.panels) panel.score.redraw();
    }

    /** Put what was spoken on the page as text: words, or phones where there are no words. */
    texts() {
      for (const { listener, answer } of this.panels) {
        const level = listener.wordTokens || listener.phoneTokens;
        const text = (tokens) => tokens.filter((token) => token.spoken).map((token) => token.name).join(" ");
        const kept = this.microphone ? 14 : 500, final = text(level.final.slice(-kept)), partial = text(level.partial);
        if (answer.dataset.shown === `${final}|${partial}`) continue;
        answer.dataset.shown = `${final}|${partial}`;
        answer.classList.toggle("live", Boolean(this.microphone));
        answer.replaceChildren(level.final.length > kept ? "… " : "", final, " ", make("span", { class: "changing" }, partial));
      }
      const first = this.panels[0].listener, spoken = (first.wordTokens || first.phoneTokens).final.filter((token) => token.spoken);
      if (spoken.length) this.announce(spoken.slice(-12).map((token) => token.name).join(" "));
      else if (!this.microphone && !this.scene.recording.spectrum.length) this.announce("");
    }

    /** Fill the lists of tokens, if they are open and complete. */
    lists() {
      for (const { listener, list, words, details } of this.panels) {
        if (!details.open || this.microphone) continue;
        const entry = (level) => (token) => make("li", {}, button(token.name, () => this.select({ ...token, level }, { play: true }), {
          class: token.spoken ? "token" : "token silent", "aria-label": `${token.name}, ${time(token.start)} to ${time(token.end)} seconds`,
        }), make("span", { "aria-hidden": "true" }, time(token.start)));
        list.replaceChildren(...listener.tokens("phones").map(entry("phones")));
        words.replaceChildren(...listener.tokens("words").map(entry("words")));
      }
    }

    /** Let the slider fit the recording. */
    move() {
      const { scene, mover } = this, frames = scene.recording ? scene.recording.spectrum.length : 0;
      const most = Math.max(0, Math.ceil(frames - scene.span));
      scene.first = Math.max(0, Math.min(scene.first, most));
      mover.root.hidden = frames === 0 || Boolean(this.microphone);
      mover.slider.root.hidden = most === 0;
      mover.slider.input.max = String(most);
      mover.slider.set(Math.round(scene.first));
    }

    zoom(direction) {
      const { scene } = this, frames = scene.recording ? scene.recording.spectrum.length : 0;
      if (!frames || this.microphone) return;
      const middle = scene.selection ? (scene.selection.start + scene.selection.end) / 2 : scene.first + scene.span / 2;
      const others = SPANS.filter((span) => (direction > 0 ? span > scene.span : span < scene.span));
      if (!others.length || (direction > 0 && scene.span >= frames)) return;
      scene.span = Math.min(direction > 0 ? others[0] : others[others.length - 1], Math.max(50, frames));
      scene.first = middle - scene.span / 2;
      this.move();
      this.redraw();
    }

    // ------------------------------------------------------------------------------------ a stretch that is chosen

    select(selection, { play = false } = {}) {
      const { scene } = this;
      scene.selection = selection;
      if (selection && !this.microphone && (selection.start < scene.first || selection.end > scene.first + scene.span)) {
        scene.first = (selection.start + selection.end - scene.span) / 2;
        this.move();
      }
      this.think();
      this.redraw();
      if (play && selection) this.playStretch();
    }

    /** Show what the networks thought about the stretch. */
    think() {
      const { selection } = this.scene;
      if (!selection) {
        this.thoughtsBody.replaceChildren(...this.help());
        return;
      }
      const what = selection.name ? `${selection.name}, ` : "";
      const title = make("p", { class: "stretch" }, make("b", {}, what), `${time(selection.start)} to ${time(selection.end)} s `,
        make("span", { class: "muted" }, `(${selection.end - selection.start} frames)`));
      this.hearButton = button("Play it", () => this.playStretch(), { class: "small", disabled: Boolean(this.microphone) });
      const sides = make("div", { class: this.panels.length > 1 ? "sides" : "" }, this.panels.map(({ listener }) => this.side(listener, selection)));
      this.thoughtsBody.replaceChildren(make("div", { class: "row" }, title, this.hearButton), sides);
    }

    side(listener, { start, end }) {
      const { likeliest, runs, frames } = listener.thoughts(start, end);
      const name = this.panels.length > 1 ? make("h3", {}, listener.model.name) : null;
      if (!frames) return make("div", {}, name, make("p", { class: "note" }, "The network has not come to this stretch yet."));
      const rows = likeliest.filter(({ share }, k) => k === 0 || share >= 0.005).map(({ name: phone, share }) => {
        const bar = make("span", { class: "amount" });
        bar.style.width = `${Math.max(0.5, 100 * share)}%`;
        return make("tr", {}, make("th", { scope: "row" }, phone), make("td", { class: "n" }, ui.percent(share)), make("td", { class: "bars" }, bar));
      });
      const table = make("table", { class: "thoughts" }, make("caption", { class: "quiet" }, `Mean probabilities of phones, ${listener.model.name}`), make("tbody", {}, rows));
      const shown = runs.slice(0, 24).map((run) => `${run.name} ${10 * run.frames} ms`).join(" · ");
      return make("div", {}, name, table, make("p", { class: "note runs" }, "Likeliest frame by frame: ", shown, runs.length > 24 ? " · …" : "", "."));
    }

    playStretch() {
      const { selection, recording } = this.scene;
      if (!selection || this.microphone) return;
      this.playFrames(selection.start, selection.end, recording.samples(selection.start * 160, selection.end * 160 + 240));
    }

    playAll() {
      if (this.player.playing) {
        this.player.stop();
        return;
      }
      const { recording } = this.scene;
      this.playButton.textContent = "Stop playing";
      this.playFrames(0, recording.spectrum.length, recording.samples());
    }

    playFrames(start, end, samples) {
      const { scene } = this;
      const whole = this.playButton.textContent === "Stop playing";
      this.player.stop();
      if (whole) this.playButton.textContent = "Stop playing";
      this.player.play(samples, (passed) => {
        scene.playhead = Math.min(end, start + passed * 100);
        if (scene.playhead > scene.first + scene.span || scene.playhead < scene.first) {
          scene.first = scene.playhead - scene.span * 0.1;
          this.move();
        }
        this.redraw();
      }, () => {
        scene.playhead = null;
        this.playButton.textContent = "Play all";
        this.redraw();
      });
    }

    /** Keys on a picture: arrows choose tokens, Enter plays, + and - zoom. */
    keys(element) {
      const panel = () => this.panels.find((one) => one.score.element === element);
      element.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || !this.scene.recording) return;
        const { listener } = panel(), now = this.scene.selection, level = (now && now.level) || (listener.wordTokens ? "words" : "phones");
        const at = now ? now.start : this.scene.first;
        const actions = {
          ArrowRight: () => this.step(listener, level, 1), ArrowLeft: () => this.step(listener, level, -1),
          ArrowUp: () => this.nearest(listener, "phones", at), ArrowDown: () => this.nearest(listener, listener.wordTokens ? "words" : "phones", at),
          Home: () => this.nearest(listener, level, 0), End: () => this.nearest(listener, level, Infinity),
          Enter: () => this.playStretch(), " ": () => this.playStretch(),
          "+": () => this.zoom(-1), "=": () => this.zoom(-1), "-": () => this.zoom(1), Escape: () => { this.player.stop(); this.select(null); },
        };
        if (!actions[event.key]) return;
        event.preventDefault();
        actions[event.key]();
        const chosen = this.scene.selection;
        if (chosen && chosen !== now) this.announce(`${chosen.name || "Stretch"}, ${time(chosen.start)} to ${time(chosen.end)} seconds`);
      });
    }

    step(listener, level, direction) {
      const now = this.scene.selection, spoken = listener.tokens(level).filter((token) => token.spoken);
      const found = direction > 0 ? spoken.find((token) => !now || token.start > now.start) : spoken.filter((token) => now && token.start < now.start).pop();
      if (found) this.select({ ...found, level });
    }

    nearest(listener, level, frame) {
      const spoken = listener.tokens(level).filter((token) => token.spoken);
      const found = spoken.find((token) => token.end > frame) || spoken[spoken.length - 1];
      if (found) this.select({ ...found, level });
    }
  }

  function joined(a, b) {
    const both = new Float32Array(a.length + b.length);
    both.set(a);
    both.set(b, a.length);
    return both;
  }

  views.register({
    name: "speech", rank: 10,
    accepts: (model) => Boolean(model.extra.speech),
    mount(root, models) { globalThis.echolearn.speech.view = new SpeechView(root, models); },
  });
})();
