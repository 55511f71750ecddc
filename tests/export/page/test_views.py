"""The pages as people use them: pointer, keyboard, files, narrow screens, both themes."""

import re
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

import exported
from echolearn import ESNForecaster, SeriesClassifier
from echolearn.export import plan_of
from echolearn.export.page.document import PageModel, page_model
from reliability.browser import put_page

NAMED = """() => Array.from(document.querySelectorAll("button, select, textarea, input, canvas, [tabindex='0']"))
    .filter((e) => !(e.labels && e.labels.length) && !e.getAttribute("aria-label") && !e.textContent.trim())
    .map((e) => e.outerHTML)"""


@pytest.fixture
def show(chromium, tmp_path):
    """Return a function that shows models in a new page, in which nothing fails and from which no request leaves."""
    opened = []

    def show(*models, width=1280, **more):
        context = chromium.new_context(viewport={"width": width, "height": 900}, **more)
        tab, problems, requests = context.new_page(), [], []
        tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        tab.on("pageerror", lambda error: problems.append(str(error)))
        tab.on("request", lambda request: requests.append(request.url))
        opened.append((context, tab, problems, requests))
        put_page(tab, models, tmp_path)
        return tab

    yield show
    for context, tab, problems, requests in opened:
        assert problems == []
        assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
        assert tab.evaluate(NAMED) == []
        context.close()


def until(tab, expression):
    """Wait until an expression holds; the page's policy forbids the way in which playwright waits for one."""
    end = time.monotonic() + 20
    while not tab.evaluate(expression):
        assert time.monotonic() < end, expression
        tab.wait_for_timeout(20)


def as_csv(x):
    return "\n".join(",".join(map(str, row)) for row in x)


def paste(tab, text):
    tab.get_by_label("The series as text").fill(text)
    tab.get_by_role("button", name="Show answers").click()


def test_a_classifier_shows_the_answers_of_predict(show):
    esn = exported.classifier()
    tab = show(page_model("steps.safetensors", esn))
    paste(tab, as_csv(exported.X[0]))
    labels, counts = np.unique(esn.predict(exported.X[0]), return_counts=True)
    share = round(100 * counts.max() / 30)
    assert tab.locator(".answer").inner_text() == f"Most often {labels[counts.argmax()]} ({share} % of 30 steps)"
    tab.wait_for_selector("section[data-done=yes]")
    assert tab.locator("tbody tr").count() == 3
    tab.get_by_label("Answers of steps.safetensors over time").focus()
    for _ in range(2):
        tab.keyboard.press("ArrowRight")
    P = esn.predict_proba(exported.X[0])[2]
    best = f"{esn.classes_[P.argmax()]} ({round(100 * P.max())} %)"
    assert tab.get_by_text(re.compile(r"^Step 2: .* → ")).first.inner_text().endswith(best)
    assert tab.locator("#announcement").get_attribute("aria-live") == "polite"


def test_true_answers_are_counted(show):
    esn = exported.classifier()
    tab = show(page_model("steps", esn))
    rows = [[*row, label] for row, label in zip(exported.X[0].tolist(), exported.LABELS[0], strict=True)]
    paste(tab, as_csv(rows))
    found = esn.predict(exported.X[0]) == exported.LABELS[0]
    assert tab.locator(".answer").inner_text().endswith(f"; right at {round(100 * np.mean(found))} % of them")
    paste(tab, as_csv([[*row[:-1], ""] for row in rows[:20]] + rows[20:]))
    right = round(100 * np.mean(found[20:]))
    assert tab.locator(".answer").inner_text().endswith(f"; right at {right} % of those with a true answer")


def test_mistakes_are_told_and_the_answers_stay(show):
    tab = show(page_model("steps", exported.classifier()))
    before = tab.locator(".answer").inner_text()
    paste(tab, "1,2\n3,4")
    assert "The text has 2 columns; this model takes 3." in tab.locator(".message.error").inner_text()
    assert tab.get_by_label("The series as text").get_attribute("aria-invalid") == "true"
    assert tab.locator(".answer").inner_text() == before


def test_a_file_can_be_chosen(show, tmp_path):
    esn, file = exported.regressor(), tmp_path / "a.csv"
    file.write_text(as_csv(exported.X[1]))
    tab = show(page_model("values", esn))
    tab.locator("input[type=file]").set_input_files(file)
    last = esn.predict(exported.X[1])[-1]
    until(tab, f"document.querySelector('.answer').textContent.includes('value 1 {last[0]:.3g}, value 2 ')")


def test_one_answer_per_sequence(show):
    esn = SeriesClassifier(10).fit(exported.X, list("abc" * 2))
    tab = show(page_model("sequences", esn))
    paste(tab, as_csv(exported.X[0]))
    P = esn.predict_proba(exported.X[0])[0]
    assert tab.locator(".answer").inner_text().startswith(f"{esn.classes_[P.argmax()]} (")
    assert tab.locator(".answer").inner_text().endswith("for the whole sequence of 30 steps")
    found, other = str(esn.classes_[P.argmax()]), str(esn.classes_[P.argmin()])
    for truth, verdict in ((found, "; this is right"), (other, f"; the true answer is {other}"), ("none", " steps")):
        paste(tab, as_csv([[*row, truth] for row in exported.X[0].tolist()]))
        assert tab.locator(".answer").inner_text().endswith(verdict)


@pytest.mark.filterwarnings("ignore")
def test_models_side_by_side(show):
    a, b = exported.classifier(), exported.classifier(10, random_state=5)
    tab = show(page_model("fixed", a), page_model("learned", b))
    paste(tab, as_csv(exported.X[0]))
    same = np.mean(a.predict(exported.X[0]) == b.predict(exported.X[0]))
    assert f"They give the same answer at {round(100 * same)} % of the steps." in tab.locator("main").inner_text()
    assert tab.get_by_role("heading", name="Answers of learned").count() == 1


def test_hostile_names_are_texts(show):
    name = '</script><img src=x onerror="document.title=1">\u2028"\''
    plan = plan_of(exported.classifier(5))
    plan = replace(plan, feature_names=(name, "b", "c"), answer=replace(plan.answer, names=(name, "<b>B</b>", "c")))
    tab = show(PageModel(name, plan, {"example": f'"{name}",b,c\n1,2,3'}), PageModel(name, plan))
    assert tab.locator("img").count() == 0
    assert tab.locator("main b b").count() == 0
    assert name.replace("\u2028", " ")[:20] in tab.title()
    assert tab.locator("h1 .name").first.text_content() == name
    assert name in tab.locator("main").text_content()


class _Counting(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self):
        self.asked.append(self.path)
        self.send_error(404)

    do_POST = do_GET

    def log_message(self, *_):
        pass


TRIES = """async (place) => {
    const out = [], load = (tag) => new Promise((done) => {
        const e = document.createElement(tag);
        e.onerror = () => { out.push(tag); done(); };
        e.onload = done;
        if (tag === "link") { e.rel = "stylesheet"; e.href = place + tag; } else e.src = place + tag;
        document.head.append(e);
    });
    await fetch(place + "fetch").catch(() => out.push("fetch"));
    for (const tag of ["img", "script", "link"]) await load(tag);
    const inline = document.createElement("script");
    inline.textContent = "globalThis.injected = 1";
    document.head.append(inline);
    try { new WebSocket(place.replace("http", "ws") + "socket"); } catch { out.push("socket"); }
    navigator.sendBeacon(place + "beacon", "x");
    new EventSource(place + "events");
    const form = document.createElement("form");
    form.action = place + "form";
    document.body.append(form);
    form.submit();
    await new Promise((done) => setTimeout(done, 200));
    return [out, globalThis.injected === undefined];
}"""


def test_no_request_and_no_script_gets_past_the_policy(chromium, tmp_path):
    """What an injected script would try is stopped by the page itself: a server that listens receives nothing."""
    context = chromium.new_context()
    tab = context.new_page()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Counting) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        place = f"http://127.0.0.1:{server.server_port}/"
        try:
            put_page(tab, [page_model("m", exported.classifier(5))], tmp_path)
            stopped, clean = tab.evaluate(TRIES, place)
            assert clean
            assert {"fetch", "img", "script", "link"} <= set(stopped)
            assert _Counting.asked == []
            file = tmp_path / "witness.html"  # without the policy, requests arrive
            file.write_text(f"<img src='{place}witness'>")
            tab.goto(file.as_uri())
            assert "/witness" in _Counting.asked
        finally:
            server.shutdown()
            thread.join()
            context.close()


def test_a_forecaster_continues_what_is_drawn(show):
    esn = exported.forecaster()
    tab = show(page_model("series", esn))
    status = tab.locator("#forecast-status")
    first = status.inner_text()
    assert first.startswith("Step 200 ahead is ")
    picture = tab.get_by_role("application").first
    box = picture.bounding_box()
    tab.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 80)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 0.42 * box["width"], box["y"] + 150, steps=4)
    tab.mouse.up()
    drawn = tab.evaluate("Array.from(document.querySelectorAll('canvas')).length")
    assert drawn == 3
    picture.focus()
    for key in ("ArrowLeft", "Shift+ArrowUp", "ArrowUp"):
        tab.keyboard.press(key)
    until(tab, "document.querySelector('#announcement').textContent.startsWith('Step 148')")
    tab.get_by_role("button", name="Start").click()
    until(tab, "parseInt(document.querySelector('#forecast-status').textContent.slice(5)) > 210")
    tab.get_by_role("button", name="Stop").click()
    tab.get_by_role("button", name="Reset").click()
    assert status.inner_text() == first


def test_the_first_forecast_is_that_of_predict(show):
    """The beginning is what followed the training series; the network starts from zero and sees all of it."""
    esn = exported.forecaster()
    tab = show(page_model("series", esn))
    expected = esn.predict(200, warm_up=esn.predict(150))[-1]
    shown = float(tab.locator("#forecast-status").inner_text().split(" is ")[1].rstrip(".").replace("−", "-"))
    assert shown == pytest.approx(expected, abs=0.006)


def test_a_pasted_beginning_and_sliders(show):
    esn = exported.forecaster()
    tab = show(page_model("series", esn))
    tab.get_by_text("Paste numbers instead").click()
    tab.get_by_label("The beginning of a series as text").fill("\n".join(map(str, exported.SERIES[:120])))
    tab.get_by_role("button", name="Continue this series").click()
    shown = tab.locator("#forecast-status").inner_text()
    expected = esn.predict(200, warm_up=exported.SERIES[:120])[-1]
    assert float(shown.split(" is ")[1].rstrip(".").replace("−", "-")) == pytest.approx(expected, abs=0.006)
    radius = tab.get_by_label("Spectral radius")
    assert radius.get_attribute("aria-valuetext") == "0.900"
    radius.focus()
    tab.keyboard.press("Home")
    assert radius.get_attribute("aria-valuetext") == "0.000"
    tab.get_by_role("button", name="As learned").click()
    assert radius.get_attribute("aria-valuetext") == "0.900"


@pytest.mark.filterwarnings("ignore")
def test_a_forecaster_of_three_values_beside_another(show):
    series = np.array([np.sin(np.arange(200) / k) for k in (5, 7, 9)]).T
    some = [
        ESNForecaster(15, learn="none", ridge=1e-3, method="closed_loop", random_state=k).fit(series) for k in (0, 1)
    ]
    tab = show(page_model("one", some[0]), page_model("two", some[1]), width=400)
    assert "one: step 200 ahead is" in tab.locator("#forecast-status").inner_text().lower()
    assert tab.locator("canvas").count() == 5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_narrow_screens_and_themes(show, theme):
    tab = show(
        page_model("a-very-long-file-name-of-a-model-" * 3, exported.classifier(6)), width=400, color_scheme=theme
    )
    assert tab.evaluate("document.documentElement.scrollWidth") <= 400
    paper = "getComputedStyle(document.body).backgroundColor"
    before = tab.evaluate(paper)
    tab.get_by_role("button", name=re.compile("colours")).click()
    assert tab.evaluate(paper) != before


def test_first_answer_within_a_second(show):
    """In wall time, on a machine that may be busy: the limit is that of the issue."""
    tab = show(page_model("steps", exported.classifier(300)))
    assert tab.evaluate("echolearn.startedAfter") < 1000


TEXTS = """async () => {
    await new Promise((done) => setTimeout(done, 300)); // what is drawn later would fail until then
    const text = (id) => document.getElementById(id).textContent;
    return [document.documentElement.dataset.ready, text("top"), text("view")];
}"""


@pytest.mark.parametrize("kind", ["steps", "series", "both directions"])
def test_a_deep_network_starts_and_shows_its_layers(node, tmp_path, kind):
    labels = list("abc" * 2) if kind == "series" else exported.LABELS
    esn = exported.deep_classifier(6, 3, labels, ensemble=2, bidirectional=kind == "both directions")
    put_page(node, [page_model("deep", esn)], tmp_path)
    ready, top, view = node.evaluate(TEXTS)
    assert ready == "sequence"
    assert "Deep classifier · 2 networks · 3 layers · 36 units · 3 inputs · 3 classes" in top
    assert "Of the 6 layers, the last one is above." in view
    assert ("run backwards in time" in view) == (kind == "both directions")
    assert ("for the whole sequence of 200 steps" in view) == (kind == "series")
    assert "input 3" in view


def test_a_deep_network_beside_one_of_one_layer(node, tmp_path):
    models = [page_model("deep", exported.deep_classifier()), page_model("flat", exported.classifier())]
    put_page(node, models, tmp_path)
    ready, top, view = node.evaluate(TEXTS)
    assert ready == "sequence"
    assert "flat: Classifier · 20 units" in top
    assert "They give the same answer at" in view
