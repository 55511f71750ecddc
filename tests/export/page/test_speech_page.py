"""The speech view of the page in a real Chromium: features, decoder, recordings, microphone, and what a reader does."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from click.testing import CliRunner

import toyspeech
from echolearn.cli.main import main
from echolearn.export.page.document import build_page, open_models
from echolearn.export.page.payload import pack_array
from echolearn.export.page.speech_payload import recognizer_payload
from echolearn.export.plan import plan_of
from echolearn.speech import mfcc, with_differences
from echolearn.speech._audio import resample
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech.recognition import Recognizer, load_recognizer
from echolearn.speech.recognition._stream import StreamSearch
from speechfiles import write_riff

TOKENS = """level => echolearn.speech.view.listeners.map(
    listener => listener.tokens(level).map(token => [token.name, token.start, token.end]))"""
RECORDING = "document.getElementById('view').dataset.recording"


@pytest.fixture(scope="module")
def spoken():
    """Samples on the 16-bit scale: some sentences with pauses between them."""
    rng = np.random.default_rng(5)
    pieces = [toyspeech.say(toyspeech.sentence(rng), rng)[0] for _ in range(4)]
    silence = (rng.normal(size=12_000) * 60).astype(np.float32)
    return np.round(np.concatenate([part for piece in pieces for part in (piece, silence)]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, spoken, microphone_file):
    place = tmp_path_factory.mktemp("speech")
    write_riff(place / "spoken.wav", spoken)
    write_riff(microphone_file, spoken)
    toyspeech.recognizer().save(place / "toy.safetensors")
    return place


@pytest.fixture
def opened(chromium, folder):
    """Open the page of model files; every error of a script fails the test."""
    tabs, errors = [], []

    def open_page(*paths, example=None, script=None, **settings):
        page = folder / "page.html"
        paths = paths or (folder / "toy.safetensors",)
        page.write_text(build_page(open_models(paths[0], *paths[1:], example=example)), encoding="utf-8")
        context = chromium.new_context(**settings)
        tab = context.new_page()
        tab.on("pageerror", lambda problem: errors.append(str(problem)))
        if script is not None:
            tab.add_init_script(script)
        tab.goto(page.as_uri())
        tab.wait_for_selector("[data-speech=ready]")
        tabs.append(context)
        return tab

    yield open_page
    for context in tabs:
        context.close()
    assert errors == []


def wait(tab, expression, timeout=20_000):
    """Wait until an expression is true; the policy of the page forbids text that is evaluated, not functions."""
    tab.wait_for_function(f"() => {expression}", timeout=timeout)


@pytest.fixture(scope="module")
def bare(chromium, folder):
    """A tab whose page nobody touches, for computations."""
    page = folder / "bare.html"
    page.write_text(build_page(open_models(folder / "toy.safetensors")), encoding="utf-8")
    context = chromium.new_context()
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.wait_for_selector("[data-speech=ready]")
    yield tab
    context.close()


def hear(tab, name, content):
    """Give a recording to the page and wait until it is recognised or refused."""
    tab.set_input_files("input[type=file]", {"name": name, "mimeType": "audio/wav", "buffer": content})
    wait(tab, f"{RECORDING} === 'done' || {RECORDING} === 'problem'")


def tokens(tab, level="phones"):
    return [[tuple(token) for token in one] for one in tab.evaluate(TOKENS, level)]


def frames(found):
    return [tuple(token[:3]) for token in found]


def riff(samples, rate=16_000, subtype="PCM_16", form="WAV"):
    content = io.BytesIO()
    soundfile.write(content, np.asarray(samples, np.float64).T / 32768, rate, subtype=subtype, format=form)
    return content.getvalue()


def recognised(model, path, *words):
    """Return phones and words of a recording with their frames, as the command prints them."""
    result = CliRunner().invoke(main, ["recognize", str(model), str(path), "--out", "json", *words])
    assert result.exit_code == 0, result.output
    (one,) = json.loads(result.stdout)["utterances"]
    levels = {"words": one["tokens"], "phones": one["phones"]} if one.get("phones") else {"phones": one["tokens"]}
    return {
        level: [(token["name"], round(token["start"] * 100), round(token["end"] * 100)) for token in found]
        for level, found in levels.items()
    }


FEATURES = """([recipe, packed, cuts]) => {
    const samples = Float32Array.from(echolearn.unpack(packed).values), rows = [];
    const stream = new echolearn.speech.FeatureStream(recipe);
    let at = 0;
    for (const cut of [...cuts, samples.length]) { rows.push(...stream.push(samples.subarray(at, cut))); at = cut; }
    rows.push(...stream.finish());
    return rows.map(row => Array.from(row));
}"""


@pytest.mark.parametrize(("normalise", "context"), [("running", 3), ("corpus", 1), ("utterance", 5), ("none", 3)])
def test_features_are_those_of_python(bare, spoken, normalise, context):
    rows = with_differences(mfcc(spoken.astype(np.float32)))
    scale = (
        (rows.mean(axis=0, dtype=float), rows.std(axis=0, dtype=float)) if normalise in ("running", "corpus") else None
    )
    if scale is not None:
        scale[1][3] = 0.0  # a column that does not move
    recipe = FeatureRecipe(normalise=normalise, context=context, scale=scale)
    own = toyspeech.recognizer()
    payload = recognizer_payload(Recognizer(own.model, own.phones, None, recipe))
    samples = spoken[:30_000].astype(np.float32)
    samples[20_000:24_000] = 0.0  # digital silence, which has no logarithm
    cuts = sorted(np.random.default_rng(1).integers(0, len(samples), 40).tolist())
    found = np.array(bare.evaluate(FEATURES, [payload["recipe"], pack_array(samples, "f4"), cuts]))
    expected = recipe.of_samples(samples)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize("size", [400, 559, 560, 1_000])
def test_the_shortest_recordings_have_features(bare, spoken, size):
    own = toyspeech.recognizer()
    samples = spoken[4_000 : 4_000 + size].astype(np.float32)
    recipe = recognizer_payload(own)["recipe"]
    found = np.array(bare.evaluate(FEATURES, [recipe, pack_array(samples, "f4"), [7, 399]]))
    np.testing.assert_allclose(found, own.features.of_samples(samples), atol=1e-3)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 44_100, 48_000])
def test_resampling_is_that_of_python(bare, rate):
    samples = (1000 * np.random.default_rng(0).normal(size=9_000)).astype(np.float32)
    found = bare.evaluate(
        """([packed, rate]) => {
            const samples = Float32Array.from(echolearn.unpack(packed).values), out = [];
            const resampler = new echolearn.speech.Resampler(rate);
            for (let at = 0, size = 1; at < samples.length; at += size, size = size * 3 % 1024)
                out.push(...resampler.push(samples.subarray(at, at + size)));
            return [...out, ...resampler.finish()];
        }""",
        [pack_array(samples, "f4"), rate],
    )
    expected = resample(samples, rate)
    assert len(found) == len(expected)
    assert np.abs(np.array(found) - expected).max() < 0.02  # of samples of about 1,000


DECODE = """async ([payload, kind, packed, sizes, pause]) => {
    const { values, shape } = echolearn.unpack(packed), decoder = await echolearn.speech.Decoder.of(payload, kind);
    const search = decoder.stream(pause), final = [], partial = [], pauses = [];
    const plain = tokens => tokens.map(token => [token.name, token.start, token.end]);
    let t = 0;
    for (const size of sizes) {
        const rows = [];
        for (const end = t + size; t < end; t++)
            rows.push(decoder.emissions(values.subarray(t * shape[1], (t + 1) * shape[1])));
        const found = search.advance(rows);
        final.push(...plain(found.final));
        pauses.push(found.paused);
        partial.push(plain(search.partial()));
    }
    const end = search.finish();
    return { final: [...final, ...plain(end.tokens)], partial, pauses, complete: end.complete };
}"""


@pytest.mark.parametrize("kind", ["phone_decoder", "word_decoder"])
@pytest.mark.parametrize("pause", [None, 50])
def test_partial_and_final_tokens_are_those_of_python(bare, spoken, kind, pause):
    """On speech, and on probabilities that are mostly noise, where many paths are nearly as good."""
    own = toyspeech.recognizer()
    payload, decoder, tab = recognizer_payload(own), getattr(own, kind), bare
    speech = own.probabilities([own.inputs(spoken, rate=toyspeech.RATE)])[0]
    rng = np.random.default_rng(3)
    noise = 0.5 * rng.dirichlet(np.full(speech.shape[1], 0.2), len(speech)) + 0.5 * speech
    for P in (speech, noise):
        sizes = [10, 30, 50, 10] * 2 + [len(P) - 200]
        search = StreamSearch(decoder.search(), own.phones.silent_states, pause)
        final, partial, pauses, emissions = [], [], [], decoder.emissions(P)
        for end, size in zip(np.cumsum(sizes), sizes, strict=True):
            more, paused = search.advance(emissions[end - size : end])
            final += more
            pauses.append(paused)
            partial.append([list(token[:3]) for token in search.partial()])
        final += search.finish()
        found = tab.evaluate(DECODE, [payload, kind, pack_array(P), sizes, pause])
        assert frames(found["final"]) == frames(final)
        assert found["partial"] == partial
        assert found["pauses"] == pauses
        assert len(final) > 5


def test_a_search_whose_beam_lost_the_end_is_repeated_without_one(opened, folder, spoken):
    own = toyspeech.recognizer()
    narrow = replace(own.words, weights=replace(own.words.weights, beam=0.5))
    path = folder / "narrow.safetensors"
    Recognizer(own.model, own.phones, narrow, own.features).save(path)
    cut = folder / "cut.wav"
    found = []
    for size in range(3_000, 12_000, 1_000):  # some of these end in the middle of a word
        write_riff(cut, spoken[:size])
        decoder = load_recognizer(path).word_decoder
        P = own.probabilities([own.inputs(spoken[:size], rate=toyspeech.RATE)])[0]
        search = decoder.search()
        search.advance(decoder.emissions(P))
        if search.best()[1] == -np.inf:
            found.append(size)
    assert found
    write_riff(cut, spoken[: found[0]])
    tab = opened(path)
    hear(tab, "cut.wav", cut.read_bytes())
    assert tokens(tab, "words") == [recognised(path, cut)["words"]]


def test_a_recording_gives_what_the_command_gives(opened, folder):
    expected = recognised(folder / "toy.safetensors", folder / "spoken.wav")
    tab = opened()
    hear(tab, "spoken.wav", (folder / "spoken.wav").read_bytes())
    assert tokens(tab, "phones") == [expected["phones"]]
    assert tokens(tab, "words") == [expected["words"]]
    assert len(expected["words"]) > 5
    words = " ".join(name for name, _, _ in expected["words"])
    assert tab.inner_text(".transcript").split() == words.split()
    tab.click("summary")
    tab.locator(".tokens.words button").first.wait_for()  # they are listed when it opens
    listed = tab.locator(".tokens.words button").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert listed == [f"{name}, {a / 100:.2f} to {b / 100:.2f} seconds" for name, a, b in expected["words"]]


FORMS = {
    "24 bits": {"subtype": "PCM_24"},
    "float": {"subtype": "FLOAT"},
    "44.1 kHz": {"rate": 44_100},
    "SPHERE": {"form": "NIST"},
    "FLAC": {"form": "FLAC"},  # decoded by the browser
    "two channels": {"channels": 2},
}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_of_recordings(opened, folder, spoken, form):
    settings = dict(FORMS[form])
    channels, given = settings.pop("channels", 1), spoken[:60_000]
    content = riff(np.stack([given * 0.6, given * 0.4]) if channels == 2 else given, **settings)
    path = folder / "form.wav"
    path.write_bytes(content)
    expected = recognised(folder / "toy.safetensors", path, *(["--channels", "mix"] if channels == 2 else []))
    tab = opened()
    hear(tab, "form.wav", content)
    assert tokens(tab) == [expected["phones"]]
    assert ("what is recognised is their mean" in tab.inner_text("#view")) == (channels == 2)


def test_what_the_microphone_gave_is_recognised_as_in_python(opened, folder):
    """The device loops and the browser resamples, so that Python is given the samples that the page has recorded."""
    tab = opened()
    tab.click("text=Start the microphone")
    wait(tab, "echolearn.speech.view.scene.recording?.seconds > 3.2")
    assert tab.inner_text(".status") == "Listening."
    tab.click("text=Stop")
    wait(tab, f"{RECORDING} === 'done'")
    samples = np.array(tab.evaluate("Array.from(echolearn.speech.view.scene.recording.samples())"), np.float32)
    own = toyspeech.recognizer()
    expected = own.recognize(samples, pause=0.5, rate=toyspeech.RATE)
    assert tokens(tab, "phones") == [frames(expected.phones)]
    assert tokens(tab, "words") == [frames(expected.words)]
    spoken = recognised(folder / "toy.safetensors", folder / "spoken.wav")["words"]
    assert {name for name, _, _ in tokens(tab, "words")[0]} <= {name for name, _, _ in spoken}
    assert len(tokens(tab, "words")[0]) >= 2
    tab.click("text=Start the microphone")  # and once more, from the beginning
    wait(tab, "echolearn.speech.view.microphone && echolearn.speech.view.scene.recording.seconds < 2")
    tab.click("text=Stop")


REFUSAL = """navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', '%s'));"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("NotAllowedError", "The microphone was refused."), ("NotFoundError", "There is no microphone.")],
)
def test_a_refused_microphone_is_said(opened, name, sentence):
    tab = opened(script=REFUSAL % name)
    tab.click("text=Start the microphone")
    tab.wait_for_selector(f"text={sentence}")
    assert tab.is_enabled("text=Start the microphone")
    assert "recording instead" in tab.inner_text(".message")


def test_a_silent_microphone_is_said(opened):
    silent = """navigator.mediaDevices.getUserMedia = async () => {
        const context = new AudioContext();
        return context.createMediaStreamDestination().stream;
    };"""
    tab = opened(script=silent)
    tab.click("text=Start the microphone")
    tab.wait_for_selector("text=The microphone gives nothing but silence; is it muted?", timeout=10_000)
    tab.click("text=Stop")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "bad.wav is an empty file."),
        (b"no sound at all" * 50, "bad.wav is not a sound file that this browser can read"),
        (riff(np.ones(300) * 100), "bad.wav holds 0.019 s of sound, which is too short"),
        (riff(np.full(20_000, 7.0)), "bad.wav is silent: all its samples are equal."),
        (riff(np.arange(20_000) % 7 * 1000.0, rate=4_000), "bad.wav has 4,000 samples per second; expected 8,000"),
        (riff(np.full(9_000, np.nan), subtype="FLOAT"), "bad.wav holds samples that are not numbers"),
    ],
)
def test_a_recording_that_cannot_be_used_is_said(opened, spoken, content, sentence):
    tab = opened()
    hear(tab, "bad.wav", content)
    assert tab.inner_text(".message").startswith(sentence)
    hear(tab, "good.wav", riff(spoken[:20_000]))  # the page goes on
    assert tab.locator(".message").is_hidden()
    assert tokens(tab)[0]


def test_a_recording_that_ends_early_is_said_and_recognised(opened, spoken):
    tab = opened()
    hear(tab, "cut.wav", riff(spoken)[: 44 + 2 * 20_000])
    assert "cut.wav ends early" in tab.inner_text(".message")
    assert tokens(tab) == [frames(toyspeech.recognizer().recognize(spoken[:20_000], rate=toyspeech.RATE).phones)]


@pytest.fixture(scope="module")
def wholes(folder):
    """Recognisers of several kinds by name; the networks or features of some need the whole utterance."""
    base = toyspeech.recognizer(words=False)
    found = {
        "both directions": Recognizer(toyspeech.network(bidirectional=True), base.phones, None, base.features),
        "deep": toyspeech.recognizer(words=False, deep=True),
        "per utterance": Recognizer(base.model, base.phones, None, FeatureRecipe()),
    }
    for name, recognizer in found.items():
        recognizer.save(folder / f"{name}.safetensors")
    return found


@pytest.mark.parametrize("name", ["both directions", "deep", "per utterance"])
def test_networks_and_features_that_need_the_whole_utterance(opened, wholes, folder, name):
    path = folder / f"{name}.safetensors"
    tab = opened(path)
    assert ("answers come when you stop" in tab.inner_text("#view")) == (name != "deep")
    hear(tab, "spoken.wav", (folder / "spoken.wav").read_bytes())
    assert tokens(tab) == [recognised(path, folder / "spoken.wav", "--level", "phones")["phones"]]


SAID = """async ([packed, live, size]) => {
    const [model] = echolearn.models, listener = await echolearn.speech.Listener.of(model);
    const samples = Float32Array.from(echolearn.unpack(packed).values);
    const features = new echolearn.speech.FeatureStream(model.extra.speech.recipe);
    listener.start({ live });
    for (let at = 0; at < samples.length; at += size) listener.take(features.push(samples.subarray(at, at + size)));
    listener.take(features.finish());
    listener.finish();
    return ["phones", "words"].map(level => listener.tokens(level).map(({ name, start, end }) => [name, start, end]));
}"""


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(("live", "size"), [(False, 10**9), (True, 3_000), (True, 777)])
def test_sound_gives_the_phones_and_words_of_python(node, folder, spoken, deep, live, size):
    """In Node: from samples, in pieces, to tokens; live: as of a stream, whose tokens are final after pauses."""
    own, page = toyspeech.recognizer(deep=deep), folder / "page.html"
    own.save(folder / "page.safetensors")
    page.write_text(build_page(open_models(folder / "page.safetensors")), encoding="utf-8")
    node.goto(page.as_uri())
    phones, words = node.evaluate(SAID, [pack_array(spoken, "f4"), live, size])
    expected = own.recognize(spoken, rate=toyspeech.RATE, pause=0.5 if live else None)
    assert frames(phones) == frames(expected.phones)
    assert frames(words) == frames(expected.words)
    assert len(words) > 5


LISTENED = """async (packed) => {
    const [model] = echolearn.models, listener = await echolearn.speech.Listener.of(model);
    const X = echolearn.unpack(packed).values, rows = [];
    for (let t = 0; t < X.length; t += model.inputs) rows.push(X.subarray(t, t + model.inputs));
    listener.take(rows);
    listener.finish();
    const { frames, states, leaks, probabilities, streams } = listener;
    return [streams, leaks, Array.from(states.row(frames - 1)), Array.from(probabilities.row(frames - 1))];
}"""


@pytest.mark.parametrize("name", ["both directions", "deep"])
def test_a_listener_keeps_states_and_posteriors(node, wholes, folder, name):
    """In Node, which has no microphone: rows of features in; states as bytes, the fastest units first."""
    model, page = wholes[name].model, folder / f"{name}.html"
    page.write_text(build_page(open_models(folder / f"{name}.safetensors")), encoding="utf-8")
    node.goto(page.as_uri())
    x = toyspeech.corpus().part("train")[0][0].astype(np.float64)
    streams, leaks, states, posteriors = node.evaluate(LISTENED, pack_array(x))
    assert streams == (name == "deep")
    np.testing.assert_allclose(posteriors, model.predict_proba(x)[-1], atol=1e-5)
    assert leaks == sorted(leaks, reverse=True)
    last = np.clip(128 + np.round(127 * model.states(x)[-1]), 1, 255)
    assert np.abs(np.sort(states) - np.sort(last)).max() <= 1


def test_a_network_without_a_decoder_shows_the_likeliest_phones(opened, folder, spoken):
    path = folder / "states.safetensors"
    toyspeech.network().save(path)
    tab = opened(path)
    hear(tab, "spoken.wav", riff(spoken[:40_000]))
    inputs = FeatureRecipe().of_samples(spoken[:40_000].astype(np.float32))
    P = toyspeech.network().predict_proba([inputs], warm_up="cold")[0]
    states = toyspeech.network().classes_
    phones = sorted({state.rsplit("_", 1)[0] for state in states})
    sums = np.stack([P[:, [s.rsplit("_", 1)[0] == phone for s in states]].sum(axis=1) for phone in phones], axis=1)
    best = [phones[k] for k in sums.argmax(axis=1)]
    shown = [name for name, start, end in tokens(tab)[0] for _ in range(end - start)]
    assert np.mean([a == b for a, b in zip(best, shown, strict=True)]) > 0.99  # the page keeps bytes for them
    assert "no decoder" in tab.inner_text("#view")


def test_two_networks_side_by_side(opened, wholes, folder):
    tab = opened(folder / "toy.safetensors", folder / "deep.safetensors")
    hear(tab, "spoken.wav", (folder / "spoken.wav").read_bytes())
    first, second = tokens(tab)
    assert first == recognised(folder / "toy.safetensors", folder / "spoken.wav")["phones"]
    assert second == recognised(folder / "deep.safetensors", folder / "spoken.wav", "--level", "phones")["phones"]
    boxes = [canvas.bounding_box() for canvas in tab.locator("canvas.score").all()]
    assert boxes[0]["y"] == boxes[1]["y"]
    assert boxes[1]["x"] > boxes[0]["x"] + boxes[0]["width"]
    tab.focus("canvas.score >> nth=1")
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".thoughts").count() == 3 - 1


def test_the_page_opens_with_its_example(opened, folder):
    tab = opened(example=folder / "spoken.wav")
    wait(tab, f"{RECORDING} === 'done'")
    assert tokens(tab) == [recognised(folder / "toy.safetensors", folder / "spoken.wav")["phones"]]
    tab.click("text=The example")
    wait(tab, f"{RECORDING} === 'done'")


def test_a_click_plays_a_phone_and_shows_what_the_network_thought(opened, spoken):
    tab = opened()
    hear(tab, "spoken.wav", riff(spoken[:40_000]))
    own = toyspeech.recognizer()
    phone = next(token for token in own.recognize(spoken[:40_000], rate=toyspeech.RATE).phones if token.name != "sil")
    place = tab.evaluate(
        """frame => { const { score } = echolearn.speech.view.panels[0], box = score.last.boxes.phoneTokens;
                      return [score.x(frame, box), box.y + box.height / 2]; }""",
        (phone.start + phone.end) / 2,
    )
    tab.locator("canvas.score").click(position={"x": place[0], "y": place[1]})
    assert tab.evaluate("echolearn.speech.view.player.playing")
    wait(tab, "echolearn.speech.view.scene.playhead !== null")
    wait(tab, "!echolearn.speech.view.player.playing && echolearn.speech.view.scene.playhead === null")
    assert f"{phone.name}, {phone.start / 100:.2f} to {phone.end / 100:.2f} s" in tab.inner_text(".stretch")
    P = own.probabilities([own.inputs(spoken[:40_000], rate=toyspeech.RATE)])[0][phone.start : phone.end]
    share = P[:, [state.startswith(f"{phone.name}_") for state in own.phones.states]].sum(axis=1).mean()
    shown = dict(row.split("\t")[:2] for row in tab.locator(".thoughts tr").all_inner_texts())
    assert abs(float(shown[phone.name].rstrip(" %")) / 100 - share) < 0.006
    box = tab.locator("canvas.score").bounding_box()
    tab.mouse.move(box["x"] + 200, box["y"] + 60)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 300, box["y"] + 60, steps=4)
    tab.mouse.up()
    chosen = tab.evaluate("echolearn.speech.view.scene.selection")
    assert chosen["name"] is None
    assert chosen["end"] - chosen["start"] > 10


def test_the_keyboard_does_everything(opened, spoken):
    tab = opened()
    hear(tab, "spoken.wav", riff(spoken))
    found = toyspeech.recognizer().recognize(spoken, rate=toyspeech.RATE)
    spoken = [token for token in found.words if token.name != "sil"]
    chosen = "(({name, start, end}) => [name, start, end])(echolearn.speech.view.scene.selection)"
    tab.focus("canvas.score")
    for key, expected in (
        ("ArrowRight", spoken[0]),
        ("ArrowRight", spoken[1]),
        ("ArrowLeft", spoken[0]),
        ("End", spoken[-1]),
    ):
        tab.keyboard.press(key)
        assert tuple(tab.evaluate(chosen)) == expected[:3]
    wait(tab, f"document.querySelector('.quiet[aria-live]').textContent.startsWith('{spoken[-1].name}, ')")
    tab.keyboard.press("Home")
    tab.keyboard.press("ArrowUp")
    first = next(token for token in found.phones if token.name != "sil")
    assert tuple(tab.evaluate(chosen)) == first[:3]
    tab.keyboard.press("Enter")
    assert tab.evaluate("echolearn.speech.view.player.playing")
    span = tab.evaluate("echolearn.speech.view.scene.span")
    tab.keyboard.press("+")
    assert tab.evaluate("echolearn.speech.view.scene.span") < span
    tab.keyboard.press("Escape")
    assert tab.evaluate("[echolearn.speech.view.scene.selection, echolearn.speech.view.player.playing]") == [
        None,
        False,
    ]
    tab.keyboard.press("Tab")  # the canvas is no trap
    assert tab.evaluate("document.activeElement.tagName") != "CANVAS"


DROP = """([name, packed]) => {
    const data = new DataTransfer();
    data.items.add(new File([Uint8Array.from(echolearn.unpack(packed).values)], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


def test_a_dropped_recording_is_recognised_and_played(opened, spoken):
    tab = opened()
    content = np.frombuffer(riff(spoken[:40_000]), np.uint8)
    tab.evaluate(DROP, ["dropped.wav", pack_array(content, "u1")])
    wait(tab, f"{RECORDING} === 'done'")
    assert tokens(tab) == [frames(toyspeech.recognizer().recognize(spoken[:40_000], rate=toyspeech.RATE).phones)]
    assert tab.inner_text(".status") == "dropped.wav: 2.50 s."
    tab.click("text=Play all")
    wait(tab, "echolearn.speech.view.scene.playhead > 5")
    tab.click("text=Stop playing")
    assert tab.evaluate("echolearn.speech.view.player.playing") is False
    assert tab.get_by_role("button", name="Play all").count() == 1


def test_slow_units_are_below_and_fast_ones_above(opened, folder, spoken):
    path = folder / "leaks.safetensors"
    network, own = toyspeech.network(leak=(0.05, 0.9)), toyspeech.recognizer(words=False)
    Recognizer(network, own.phones, None, own.features).save(path)
    tab = opened(path)
    hear(tab, "spoken.wav", riff(spoken[:20_000]))
    leak = plan_of(network).layer.leak
    assert leak.min() < 0.1 < 0.8 < leak.max()
    leaks = np.array(tab.evaluate("echolearn.speech.view.listeners[0].leaks"))
    np.testing.assert_allclose(leaks, -np.sort(-leak), rtol=1e-6)
    bytes_ = np.array(tab.evaluate("Array.from(echolearn.speech.view.listeners[0].states.row(50))"))
    H = network.states([own.inputs(spoken[:20_000], rate=toyspeech.RATE)], warm_up="cold")[0][50]
    np.testing.assert_allclose((bytes_ - 128) / 127, H[np.argsort(-leak, kind="stable")], atol=0.005)


def test_names_for_screen_readers(opened, spoken):
    tab = opened()
    hear(tab, "spoken.wav", riff(spoken[:40_000]))
    for name in ("Start the microphone", "Choose a recording", "Play all", "Zoom in", "Zoom out"):
        assert tab.get_by_role("button", name=name).count() == 1
    label = tab.locator("canvas.score").get_attribute("aria-label")
    assert label.startswith("What toy.safetensors recognises")
    for heading in ("Listen", "What it recognises", "What the network thought"):
        assert tab.get_by_role("region", name=heading).count() == 1
    spoken = [
        token.name
        for token in toyspeech.recognizer().recognize(spoken[:40_000], rate=toyspeech.RATE).words
        if token.name != "sil"
    ]
    wait(tab, f"document.querySelector('.quiet[aria-live]').textContent === {json.dumps(' '.join(spoken))}")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 400, 1280])
def test_nothing_is_wider_than_the_screen(opened, folder, wholes, width, scheme):
    settings = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    tab = opened(folder / "toy.safetensors", folder / "deep.safetensors", **settings)
    hear(
        tab, "a recording with a very long name that nobody would like to read.wav" * 2, riff(np.sin(np.arange(90_000)))
    )
    tab.focus("canvas.score")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_no_name_is_read_as_html_and_no_request_leaves(opened, folder, chromium):
    """Names of phones, words and recordings come from files."""
    evil = "<img src=x onerror=alert(1)></script>"
    own = toyspeech.recognizer()
    words = replace(own.words.lexicon, pronunciations={**own.words.lexicon.pronunciations, evil: (("n", "ow"),)})
    hostile = own.with_words(words).with_word_list([evil, "YES", "SO"])
    path = folder / "hostile.safetensors"
    hostile.save(path)
    tab, requests, dialogs = opened(path), [], []
    tab.on("request", lambda request: requests.append(request.url))
    tab.on("dialog", lambda dialog: dialogs.append(dialog.message) or dialog.dismiss())
    hear(tab, f"{evil.replace('/', '')}.wav", (folder / "spoken.wav").read_bytes())
    tab.click("summary")
    tab.focus("canvas.score")
    tab.keyboard.press("ArrowRight")
    assert evil in tab.inner_text(".transcript")
    assert tab.locator("img").count() == 0
    assert [url for url in requests if not url.startswith(("blob:", "data:"))] == []
    assert dialogs == []
