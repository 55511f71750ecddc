/* Sound into the page and out of it: recordings, the microphone, and what is played.

   await echolearn.speech.readSound(file) -> {samples, rate, notes}: one channel on the 16-bit scale, sentences about it
   new echolearn.speech.Microphone() -> await .start(onSamples), .stop(): onSamples(samples on the 16-bit scale, rate)
   new echolearn.speech.Player() -> .play(samples at 16 kHz, onTime, onEnd), .stop()
   Problems are errors whose message is a sentence for the reader.

   WAV and SPHERE files are read here, so that their samples are exact; the browser decodes all others. The policy of
   the page forbids scripts from elsewhere, and with them audio worklets: the microphone is read by a ScriptProcessor,
   which all browsers have. */
"use strict";
globalThis.echolearn.speech = globalThis.echolearn.speech || {};
(() => {
  const FULL_SCALE = 32768;
  const RATE = 16000;
  const BUFFER = 2048; // samples of the microphone at a time

  const text = (bytes, start, end) => String.fromCharCode(...bytes.subarray(start, end));

  /** Return readers of samples of a kind as numbers between -1 and 1; null if the kind is unknown. */
  function sampleReader(view, kind, bits, little = true) {
    if (kind === "float" && bits === 32) return (at) => view.getFloat32(at, little);
    if (kind === "float" && bits === 64) return (at) => Math.fround(view.getFloat64(at, little));
    if (kind !== "int") return null;
    if (bits === 8) return (at) => (view.getUint8(at) - 128) / 128;
    if (bits === 16) return (at) => view.getInt16(at, little) / 32768;
    if (bits === 32) return (at) => Math.fround(view.getInt32(at, little) / 2147483648);
    if (bits !== 24) return null;
    return (at) => (view.getUint8(at) | (view.getUint8(at + 1) << 8) | (view.getInt8(at + 2) << 16)) / 8388608;
  }

  /** Return {rate, channels, bits, kind, start, size} of a RIFF file; null if it is none that is read here. */
  function riffLayout(bytes, view) {
    if (bytes.length < 12 || text(bytes, 0, 4) !== "RIFF" || text(bytes, 8, 12) !== "WAVE") return null;
    let format = null;
    for (let at = 12; at + 8 <= bytes.length; ) {
      const name = text(bytes, at, at + 4), size = view.getUint32(at + 4, true), start = at + 8;
      if (name === "fmt " && start + 16 <= bytes.length) {
        let code = view.getUint16(start, true);
        if (code === 0xfffe && start + 26 <= bytes.length) code = view.getUint16(start + 24, true);
        format = {
          kind: code === 1 ? "int" : code === 3 ? "float" : "other", channels: view.getUint16(start + 2, true),
          rate: view.getUint32(start + 4, true), bits: view.getUint16(start + 14, true),
        };
      } else if (name === "data") {
        return format && { ...format, start, size: size === 0 || size === 0xffffffff ? bytes.length - start : size };
      }
      at = start + size + (size % 2);
    }
    return null;
  }

  /** Return the layout of a NIST SPHERE file of plain samples; null if it is none. */
  function sphereLayout(bytes) {
    if (bytes.length < 1024 || text(bytes, 0, 7) !== "NIST_1A") return null;
    const start = parseInt(text(bytes, 8, 16), 10) || 1024;
    const head = text(bytes, 0, Math.min(start, bytes.length, 65536));
    const field = (name) => (new RegExp(`^${name}\\s+-\\S+\\s+(\\S+)`, "m").exec(head) || [null, null])[1];
    const bits = 8 * Number(field("sample_n_bytes") || 2), coding = field("sample_coding") || "pcm";
    const channels = Number(field("channel_count") || 1);
    return {
      kind: coding === "pcm" && bits === 16 ? "int" : "other", bits, channels, rate: Number(field("sample_rate")),
      little: field("sample_byte_format") !== "10", start, size: Number(field("sample_count") || 0) * channels * (bits / 8),
    };
  }

  /** Return one channel, the mean of all, between -1 and 1; null if the file is not read here. */
  function plainSamples(buffer) {
    const bytes = new Uint8Array(buffer), view = new DataView(buffer);
    const layout = riffLayout(bytes, view) || sphereLayout(bytes);
    const at = layout && sampleReader(view, layout.kind, layout.bits, layout.little !== false);
    if (!at || layout.channels < 1) return null;
    const width = layout.bits / 8, frame = width * layout.channels;
    const there = Math.max(0, Math.min(layout.size, bytes.length - layout.start));
    const samples = new Float32Array(Math.floor(there / frame));
    for (let k = 0; k < samples.length; k++) {
      let sum = 0;
      for (let c = 0; c < layout.channels; c++) sum += at(layout.start + k * frame + c * width);
      samples[k] = sum / layout.channels;
    }
    return { samples, rate: layout.rate, channels: layout.channels, promised: Math.floor(layout.size / frame) };
  }

  /** Let the browser decode a recording, at 16 kHz. */
  async function decodedSamples(buffer, name) {
    let found;
    try {
      found = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(buffer);
    } catch {
      throw new Error(`${name} is not a sound file that this browser can read; WAV, FLAC, OGG and MP3 files work.`);
    }
    const samples = new Float32Array(found.length);
    for (let c = 0; c < found.numberOfChannels; c++) {
      found.getChannelData(c).forEach((value, k) => { samples[k] += value / found.numberOfChannels; });
    }
    return { samples, rate: RATE, channels: found.numberOfChannels, promised: 0 };
  }

  async function readSound(file) {
    const name = file.name || "The recording";
    const buffer = await file.arrayBuffer();
    if (buffer.byteLength === 0) throw new Error(`${name} is an empty file.`);
    const { samples, rate, channels, promised } = plainSamples(buffer) || (await decodedSamples(buffer, name));
    if (!(rate >= 8000 && rate <= 192000)) {
      throw new Error(`${name} has ${rate.toLocaleString("en")} samples per second; expected 8,000 to 192,000.`);
    }
    check(samples, rate, name);
    const notes = [];
    if (channels > 1) notes.push(`${name} has ${channels} channels; what is recognised is their mean.`);
    if (samples.length < promised) {
      notes.push(`${name} ends early: its header promises ${seconds(promised / rate)} s, ${seconds(samples.length / rate)} s are there.`);
    }
    return { samples: samples.map((value) => value * FULL_SCALE), rate, notes };
  }

  const seconds = (value) => Number(value.toFixed(value < 1 ? 3 : 1)).toLocaleString("en");

  /** Raise an error for sound in which nothing can be recognised. */
  function check(samples, rate, name) {
    if (samples.length / rate < 0.025) {
      throw new Error(`${name} holds ${seconds(samples.length / rate)} s of sound, which is too short: one frame needs 0.025 s.`);
    }
    let low = Infinity, high = -Infinity;
    for (const value of samples) {
      if (!(Math.abs(value) < 65536)) throw new Error(`${name} holds samples that are not numbers or far too large.`);
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (high === low) throw new Error(`${name} is silent: all its samples are equal.`);
    if (Math.max(high, -low) * FULL_SCALE <= 1) throw new Error(`${name} is silent: it is never louder than one step of 16 bits.`);
  }

  const REFUSALS = {
    NotAllowedError: "The microphone was refused. Allow it in the browser, or choose a recording instead.",
    NotFoundError: "There is no microphone. Connect one, or choose a recording instead.",
    NotReadableError: "The microphone cannot be read; perhaps another program uses it. Choose a recording instead.",
  };

  class Microphone {
    async start(onSamples) {
      if (!navigator.mediaDevices || !navigator.mediaDevices.getUserMedia) {
        throw new Error("The browser gives this page no microphone. Open it as a file or from this machine, or choose a recording.");
      }
      const wanted = { channelCount: 1, echoCancellation: false, noiseSuppression: false, autoGainControl: false };
      try {
        this.stream = await navigator.mediaDevices.getUserMedia({ audio: wanted });
      } catch (problem) {
        throw new Error(REFUSALS[problem.name] || `The microphone could not be opened (${problem.message || problem.name}).`);
      }
      this.context = new AudioContext();
      const source = this.context.createMediaStreamSource(this.stream);
      this.node = this.context.createScriptProcessor(BUFFER, 1, 1);
      this.node.onaudioprocess = ({ inputBuffer }) => {
        onSamples(inputBuffer.getChannelData(0).map((value) => value * FULL_SCALE), this.context.sampleRate);
      };
      source.connect(this.node);
      this.node.connect(this.context.destination); // its output is silence; without a way out it would not run
      await this.context.resume();
    }

    stop() {
      if (this.node) this.node.onaudioprocess = null;
      if (this.stream) for (const track of this.stream.getTracks()) track.stop();
      if (this.context) this.context.close();
      this.node = this.stream = this.context = null;
    }
  }

  class Player {
    /** Play samples at 16 kHz; onTime(seconds since the start) for every picture, onEnd() when it is over. */
    play(samples, onTime, onEnd) {
      this.stop();
      if (!samples.length) return;
      const context = this.context || (this.context = new AudioContext());
      context.resume();
      const buffer = context.createBuffer(1, samples.length, RATE);
      buffer.copyToChannel(samples.map((value) => value / FULL_SCALE), 0);
      const source = context.createBufferSource();
      source.buffer = buffer;
      source.connect(context.destination);
      const began = context.currentTime;
      this.source = source;
      this.onEnd = onEnd;
      source.onended = () => { if (this.source === source) this.stop(); };
      source.start();
      const tick = () => {
        if (this.source !== source) return;
        onTime(Math.min(context.currentTime - began, samples.length / RATE));
        requestAnimationFrame(tick);
      };
      tick();
    }

    get playing() {
      return Boolean(this.source);
    }

    stop() {
      const { source, onEnd } = this;
      this.source = this.onEnd = null;
      if (source) {
        source.onended = null;
        source.stop();
        onEnd();
      }
    }
  }

  Object.assign(globalThis.echolearn.speech, { readSound, Microphone, Player });
})();
