import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from report_synthetic import film, report_data

from sameworld.core import Scene, SpecError
from sameworld.report import FilmRow, report_html


class Page(HTMLParser):
    """Tags and ids of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, {k: v or "" for k, v in attrs}))

    def of(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def html():
    return report_html(report_data())


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_same_data_give_the_same_bytes(html):
    assert report_html(report_data()) == html


def test_ids_are_unique_and_references_resolve(html, page):
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    used = set(re.findall(r"url\(#([^)]+)\)", html)) | set(re.findall(r'href="#([^"]+)"', html))
    assert used and used <= set(ids)


def test_nothing_points_outside_the_file(html, page):
    sources = [a[k] for _, a in page.tags for k in ("src", "href", "xlink:href") if k in a]
    assert sources and all(s.startswith(("#", "data:")) for s in sources)
    assert "@import" not in html and "url(http" not in html


def test_figures_images_and_tables_are_accessible(page):
    drawings = page.of("svg")
    assert len(drawings) == 3 * 4 + 2 + 2 + 2 + 1
    assert all(d["role"] == "img" and d["aria-labelledby"] for d in drawings)
    assert len(page.of("img")) == 21 and all(i["alt"] for i in page.of("img"))
    assert page.of("html")[0]["lang"] == "en"
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert all("scope" in a for a in page.of("th"))


def test_figure_colours_follow_the_theme(html):
    drawings = "".join(re.findall(r"<svg.*?</svg>", html, flags=re.DOTALL))
    colours = re.findall(r"(?:fill|stroke): (#[0-9a-fA-F]+)", drawings)
    assert colours == []
    assert "var(--after)" in drawings and "var(--before)" in drawings


def test_verdicts_are_words_and_symbols_not_colour_alone(html):
    for symbol, verdict in (
        ("✓", "determined"),
        ("⇄", "only in combination"),
        ("○", "not excited"),
    ):
        assert f'<span aria-hidden="true">{symbol}</span> {verdict}' in html


def test_text_from_outside_is_escaped():
    evil = '<script>alert("x")</script>'
    data = replace(report_data(episodes=3), title=evil, provenance={evil: evil})
    data = replace(data, scene=Scene(name=evil, mjcf="<mujoco/>"), files={"scene": evil})
    data = replace(data, result=replace(data.result, advice=(evil,)))
    channels = (replace(data.channels[0], name="cube.pos"), data.channels[1])
    text = report_html(replace(data, channels=channels))
    assert "alert(" in text and "<script>alert" not in text
    assert len(Page(text).of("script")) == 1


def test_a_report_without_held_out_recordings_still_reads():
    data = replace(report_data(), held_out=(), film=())
    data = replace(data, result=replace(data.result, holdout=None, advice=(), searches=()))
    text = report_html(data)
    assert "not tested" in text and 'id="overlays"' not in text and 'href="#film"' not in text


def test_a_world_that_trains_blocks_has_no_verdict_table():
    data = report_data(episodes=3)
    result = replace(data.result, blocks_only=True, verdicts=(), combinations=())
    text = report_html(replace(data, result=result))
    assert "trains its own blocks" in text and 'class="verdicts"' not in text


def test_held_out_predictions_must_belong_to_the_episode():
    first, second = report_data(episodes=2).held_out
    with pytest.raises(SpecError, match="toss-000"):
        replace(first, before=second.before)


def test_film_rows_need_one_time_per_image():
    row = film(np.random.default_rng(0))[0]
    with pytest.raises(SpecError, match="N times"):
        FilmRow(label="recorded", time=row.time[:-1], images=row.images)
