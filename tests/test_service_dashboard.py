"""The dashboard, in headless Chromium: what it shows, by keyboard, on a phone and in the dark."""

import re
import shutil

import pytest

pytest.importorskip("fastapi")
from csdpp.service.dashboard import PAGE, POLICY
from csdpp.service.tokens import new_token
from service import FRUIT, live

K = 1000


def chromium():
    """A browser, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api")
    if chromium() is None:
        pytest.skip("needs Chromium on the PATH: apt-get install chromium")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-quic"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    names = [f"label-{i:03}" for i in range(K)]
    settings = {"labels": names, "features": ["red", "round"], "learner": {"n_components": 2}}
    with live(tmp_path_factory.mktemp("store"), **settings) as service:
        items = [{"id": f"mail-{i}", "features": {"red": i % 2}, "labels": names[i % 2 : 3 : 2]} for i in range(60)]
        assert service.post("/v1/learn", {"items": items})[0] == 200
        service.post("/v1/predict", {"id": "<b>late</b>".replace("/", ""), "features": {"red": 1}})
        yield service


@pytest.fixture
def page(browser, service):
    """The page, alive; any error in its script fails the test, as does any request to elsewhere."""
    context = browser.new_context(viewport={"width": 1200, "height": 1000})
    page, wrong = context.new_page(), []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: request.url.startswith(service.url) or wrong.append(request.url))
    page.goto(service.url)
    page.get_by_text("live, version 60").wait_for()
    page.locator("#labels tbody tr").first.wait_for()
    yield page
    context.close()
    assert [url for url in wrong if not url.startswith("data:")] == []


def cells(page, place, rows=3):
    return page.evaluate(
        f"[...document.querySelectorAll('#labels tbody tr')].slice(0, {rows}).map(r => r.cells[{place}].textContent)"
    )


def test_page_asks_nobody_else():
    assert not re.findall(r"(?:src|href)=\"(?!data:)|@import|url\(|https?://(?!www\.w3\.org/2000/svg)", PAGE)
    assert "unsafe-inline" not in POLICY


def test_figures_are_those_of_the_service(page, service):
    facts = service.get("/v1/metrics")[1]
    assert page.locator("#tiles").inner_text().splitlines()[:2] == ["60", "answers learned"]
    assert f"f1 {facts['costs']['f1']:.3f}" in page.locator("#key").inner_text()
    assert page.locator("#curve path").count() == 4
    assert page.locator("#items tbody tr").first.inner_text().split("\t")[:2] == ["<b>late<b>", "waits for an answer"]
    assert "learned as 60" in page.locator("#items").inner_text()
    assert "CSDPP(n_components=2)" in page.locator("#model").inner_text()


def test_thousand_labels_are_sorted_and_searched_by_keyboard(page):
    assert page.locator("#labels tbody tr").count() == K
    assert cells(page, 0) == ["label-000", "label-001", "label-002"]  # by positives, the most first
    page.locator("#search").focus()
    page.keyboard.type("-99")
    assert page.locator("#count").inner_text() == f"10 of {K}"
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")  # the head of the first column
    assert page.locator("th[aria-sort=ascending]").inner_text() == "label ▴"
    assert cells(page, 0) == ["label-990", "label-991", "label-992"]
    page.keyboard.press("Enter")
    assert cells(page, 0) == ["label-999", "label-998", "label-997"]
    page.locator("#search").fill("no such label")
    assert page.locator("#count").inner_text() == f"0 of {K}"


def test_it_is_live(page, service):
    service.post("/v1/feedback", {"id": "<b>late<b>", "labels": ["label-007"]})
    page.get_by_text("live, version 61").wait_for()
    assert "label-007" in page.locator("#items tbody tr").first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_readable_on_a_phone_and_in_the_dark(browser, service, scheme):
    context = browser.new_context(viewport={"width": 360, "height": 740}, color_scheme=scheme)
    page = context.new_page()
    page.goto(service.url)
    page.get_by_text("live, version").wait_for()
    page.locator("#labels tbody tr").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    back, fore = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
    assert (luminance(back) < luminance(fore)) == (scheme == "dark")
    for name in ("--fore", "--soft", "--bad", "--a", "--b", "--c", "--d"):
        for ground in ("--back", "--card"):
            pair = page.evaluate(
                f"['{name}', '{ground}'].map(n => getComputedStyle(document.body).getPropertyValue(n))"
            )
            low, high = sorted(map(luminance, pair))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (name, ground)
    context.close()


def luminance(colour):
    """As WCAG has it, of #rrggbb, #rgb or rgb(r, g, b)."""
    text = colour.strip()
    if text.startswith("#"):
        digits = text[1:] if len(text) == 7 else "".join(2 * c for c in text[1:])
        parts = [int(digits[i : i + 2], 16) for i in (0, 2, 4)]
    else:
        parts = [int(part) for part in re.findall(r"\d+", text)[:3]]
    linear = [(c / 255) / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in parts]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_token_is_asked_for_and_kept_for_the_session(browser, tmp_path):
    secret, token = new_token("eyes", ["predict"])
    with live(tmp_path, tokens=(token,), **FRUIT) as service:
        context = browser.new_context()
        page = context.new_page()
        page.goto(service.url)
        page.get_by_text("needs a token").wait_for()
        page.get_by_label("A token of this service").fill(secret)
        page.keyboard.press("Enter")
        page.get_by_text("live, version 0").wait_for()
        page.reload()
        page.get_by_text("live, version 0").wait_for()
        context.close()
