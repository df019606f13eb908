import re

import pytest
from report_browser import Browser, chromium
from report_synthetic import report_data

from sameworld.report import report_html

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium() is None, reason="no Chromium on the path"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report_html(report_data(episodes=6)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, url):
    def open_at(**screen):
        browser.emulate(**screen)
        browser.open(url)
        return browser

    return open_at


def background(browser):
    return browser.evaluate("getComputedStyle(document.body).backgroundColor")


def brightness(colour):
    return sum(int(n) for n in re.findall(r"\d+", colour)[:3]) / 3


def test_page_opens_without_errors_and_draws_everything(opened):
    browser = opened(width=1280)
    assert browser.evaluate("document.title").startswith("Tossed cube")
    assert browser.evaluate("document.querySelectorAll('svg.figure').length") == 19
    boxes = "[...document.querySelectorAll('svg.figure')].map(s => s.getBoundingClientRect().{})"
    smallest = f"Math.min(...{boxes})"
    assert browser.evaluate(smallest.format("width")) > 150
    assert browser.evaluate(smallest.format("height")) > 80
    loaded = "[...document.images].every(i => i.complete && i.naturalWidth > 0)"
    assert browser.evaluate(loaded) and browser.evaluate("document.images.length") == 21
    assert browser.named("Runtime.exceptionThrown") == []
    assert [e for e in browser.named("Log.entryAdded") if e["entry"]["level"] == "error"] == []


def test_no_request_leaves_the_file(opened, url):
    browser = opened(width=1280)
    asked = [e["request"]["url"] for e in browser.named("Network.requestWillBeSent")]
    assert asked and all(u == url or u.startswith("data:") for u in asked)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_theme_follows_the_system_and_the_button_turns_it(opened, scheme):
    browser = opened(width=1280, scheme=scheme)
    ink = "getComputedStyle(document.querySelector('svg.figure text')).fill"
    before, drawn = brightness(background(browser)), brightness(browser.evaluate(ink))
    assert (before > 128) == (scheme == "light")
    assert (drawn > before) == (scheme == "dark")
    browser.evaluate("document.getElementById('theme').click()")
    assert (brightness(background(browser)) > 128) == (scheme == "dark")
    assert (brightness(browser.evaluate(ink)) > 128) == (scheme == "light")
    browser.evaluate("document.getElementById('theme').click()")
    assert brightness(background(browser)) == before


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_page_never_scrolls_sideways(opened, width):
    browser = opened(width=width)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("window.innerWidth") == width


def test_text_keeps_a_readable_contrast(opened):
    for scheme in ("light", "dark"):
        browser = opened(width=1280, scheme=scheme)
        for selector in (".note", ".verdict.good", ".verdict.fair", ".verdict.poor", ".lead", "a"):
            script = f"""(() => {{
                const e = document.querySelector('{selector}'), s = getComputedStyle(e);
                const own = s.backgroundColor.startsWith('rgba(0, 0, 0, 0') ? document.body : e;
                return [s.color, getComputedStyle(own).backgroundColor];
            }})()"""
            assert contrast(*browser.evaluate(script)) >= 4.5, (scheme, selector)


def contrast(first, second):
    """Contrast ratio of two colours, WCAG 2.1."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
