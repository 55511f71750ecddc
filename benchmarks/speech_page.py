"""The page of a speech model in Chromium: its size, its first answer, the cost of listening, and equality with Python.

    F="--corpus synthetic --frames 20000 --normalise running --for recognition --network esn --units 300"
    echolearn train --out learned300.safetensors $F --epochs 12
    echolearn train --out fixed300.safetensors $F --set learn=none
    python benchmarks/speech_page.py learned300.safetensors fixed300.safetensors FOLDER_OF_THE_CORPUS

The microphone is Chromium's own, fed from a file. Its cost is processor time of the process that shows the page (all
its threads, drawing without a graphics card included) per second of sound, as Chromium's Performance domain gives it.
The time to the first answer is by the clock, the least of some repeats: others may use the machine meanwhile. It is
that of a page written with --example, from the start of the navigation to the first phones or words on the page.
Needs playwright and Chromium.
"""

import argparse
import sys
import tempfile
import time
import wave
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import results
from echolearn.export.page.document import build_page, open_models
from echolearn.speech import read_audio
from echolearn.speech.recognition import load_recognizer
from reliability.browser import browser

REPEATS, RECORDINGS, LIVE_SECONDS, WARM_SECONDS = 7, 30, 12, 3
DONE = "() => document.getElementById('view').dataset.recording === 'done'"
WATCH = """
const look = () => {
    const found = document.querySelector(".transcript");
    if (found && found.textContent.trim()) globalThis.answeredAt = performance.now();
    else setTimeout(look, 1);
};
look();
"""
TOKENS = "level => echolearn.speech.view.listeners[0].tokens(level).map(t => [t.name, t.start, t.end])"
PARTS = """async samples => {
    const { models, speech } = echolearn, listener = await speech.Listener.of(models[0]), of = listener.payload;
    const sound = Float32Array.from(samples), times = { "features": [], network: [], phones: [], words: [] };
    for (let repeat = 0; repeat < 9; repeat++) {
        const features = new speech.FeatureStream(of.recipe), timed = (name, run) => {
            const start = performance.now(), found = run();
            times[name].push(performance.now() - start);
            return found;
        };
        const rows = timed("features", () => [...features.push(sound), ...features.finish()]);
        const state = models[0].start();
        const P = timed("network", () => rows.map(row => Float64Array.from(models[0].step(state, row))));
        for (const [name, decoder] of [["phones", listener.phoneDecoder], ["words", listener.wordDecoder]]) {
            if (decoder) timed(name, () => { const s = decoder.stream(of.pause);
                for (const p of P) s.advance([decoder.emissions(p)]); s.finish(); });
        }
        times.frames = rows.length;
    }
    const least = name => 1000 * Math.min(...times[name]) / times.frames;
    const found = ["features", "network", "phones", "words"].filter(name => times[name].length);
    return Object.fromEntries(found.map(name => [name, least(name)]));
}"""


def page_of(folder, name, *paths, example=None):
    """Write the page of some models and return its file."""
    file = folder / name
    file.write_text(build_page(open_models(paths[0], *paths[1:], example=example)), encoding="utf-8")
    return file


def opened(chromium, file, script=None):
    tab = chromium.new_context().new_page()
    if script is not None:
        tab.add_init_script(script)
    tab.goto(file.as_uri())
    tab.wait_for_selector("[data-speech=ready]")
    return tab


def first_answer(chromium, file):
    """Return the least seconds from the start of a navigation to the first answer: by the clock, and of the thread."""
    clock, thread = [], []
    for _ in range(REPEATS):
        tab = chromium.new_context().new_page()
        tab.add_init_script(WATCH)
        session = tab.context.new_cdp_session(tab)
        session.send("Performance.enable")
        tab.goto(file.as_uri())
        tab.wait_for_function("() => globalThis.answeredAt")
        thread.append(metrics_of(session)["ThreadTime"])
        clock.append(tab.evaluate("globalThis.answeredAt") / 1000)
        tab.context.close()
    return min(clock), min(thread)


def metrics_of(session):
    return {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}


def listening(chromium, file):
    """Return frames per second of a microphone, and processor time of the page in percent of a core."""
    tab = opened(chromium, file)
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable")

    def metrics():
        found = metrics_of(session)
        frames = tab.evaluate("echolearn.speech.view.listeners[0].frames")
        return found["ProcessTime"], found["ThreadTime"], frames, time.monotonic()

    tab.click("text=Start the microphone")
    tab.wait_for_function("() => echolearn.speech.view.microphone")
    time.sleep(WARM_SECONDS)
    first = metrics()
    time.sleep(LIVE_SECONDS)
    process, thread, frames, seconds = (b - a for a, b in zip(first, metrics(), strict=True))
    tab.evaluate("echolearn.speech.view.stop()")
    recorded = tab.evaluate("echolearn.speech.view.scene.recording.seconds")
    tab.context.close()
    return {
        "frames_per_second": frames / seconds,
        "process_percent": 100 * process / seconds,
        "thread_percent": 100 * thread / seconds,
        "recorded_seconds": recorded,
    }


def equal_recordings(chromium, file, model, recordings):
    """Return how many recordings have the same phones, and the same words, on the page and in Python."""
    recognizer, tab, same = load_recognizer(model), opened(chromium, file), {"phones": 0, "words": 0}
    for recording in recordings:
        tab.evaluate("document.getElementById('view').dataset.recording = ''")
        tab.set_input_files("input[type=file]", recording)
        tab.wait_for_function(DONE)
        found = recognizer.recognize(read_audio(recording), rate=16_000)
        for level in same:
            tokens = getattr(found, level)
            if tokens is not None:
                same[level] += tab.evaluate(TOKENS, level) == [list(token[:3]) for token in tokens]
    tab.context.close()
    return same


def microphone_file(folder, recordings):
    """Write some recordings one after another, with silence between them."""
    silence = (np.random.default_rng(0).normal(size=12_000) * 20).astype("<i2")
    pieces = [part for one in recordings for part in (np.round(read_audio(one)).astype("<i2"), silence)]
    path = folder / "microphone.wav"
    with wave.open(str(path), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(16_000)
        out.writeframes(np.concatenate(pieces).tobytes())
    return path


def rows_of(model, compare, recordings, folder):
    one, two = page_of(folder, "one.html", model), page_of(folder, "two.html", model, compare)
    example = page_of(folder, "example.html", model, example=recordings[0])
    sound = microphone_file(folder, recordings[:6])
    flags = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
    with browser(*flags, f"--use-file-for-fake-audio-capture={sound}") as chromium:
        megabytes = one.stat().st_size / 1e6
        yield {
            "work": "page of a 300-unit recogniser with words",
            "ours": megabytes,
            "unit": "MB",
            "required": "<= 3",
            "reached": megabytes <= 3,
        }
        yield {"work": "page of two, side by side", "ours": two.stat().st_size / 1e6, "unit": "MB"}
        first, thread = first_answer(chromium, example)
        yield {
            "work": "first answer after opening",
            "ours": first,
            "unit": "s",
            "thread_seconds": thread,
            "required": "<= 1",
            "reached": first <= 1,
        }
        for work, file, required in (("listening, one network", one, True), ("listening, two networks", two, False)):
            live = listening(chromium, file)
            met = live["process_percent"] < 30 and live["frames_per_second"] > 97
            row = {"work": work, "ours": live["process_percent"], "unit": "% of one core", **live}
            yield {**row, "required": "< 30 at 100 frames/s", "reached": met} if required else row
        tab = opened(chromium, one)
        parts = tab.evaluate(PARTS, read_audio(recordings[0]).tolist())
        tab.context.close()
        yield {
            "work": "per frame",
            "ours": sum(parts.values()),
            "unit": "us",
            **{f"{name}_us": value for name, value in parts.items()},
        }
        same = equal_recordings(chromium, one, model, recordings)
        for level, count in same.items():
            yield {
                "work": f"recordings with the same {level} as `recognize`",
                "ours": count,
                "unit": f"of {len(recordings)}",
                "required": "all",
                "reached": count == len(recordings),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("compare", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    recordings = sorted(arguments.folder.rglob("*.WAV"))[:RECORDINGS]
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for row in rows_of(arguments.model, arguments.compare, recordings, Path(folder)):
            rows.append({"figure": "speech page", **row})
            print(row, flush=True)
    recognizer = load_recognizer(arguments.model)
    facts = {
        "units": recognizer.model.hidden_units,
        "states": len(recognizer.phones.states),
        "words": len(recognizer.words.lexicon.words),
    }
    results.write("speech_page", rows, **facts)


if __name__ == "__main__":
    main()
