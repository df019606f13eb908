"""A corpus of bad scenes, beliefs and episodes: each is refused by name, with the reason."""

import pytest
from bad_beliefs import BELIEFS
from bad_episodes import EPISODES
from bad_scenes import SCENES
from bad_urdfs import URDFS

CORPUS = (*SCENES, *BELIEFS, *EPISODES, *URDFS)


@pytest.mark.parametrize("bad", CORPUS, ids=lambda bad: bad.name)
def test_bad_input_is_refused_with_its_reason(bad, tmp_path, monkeypatch):
    empty = tmp_path / "elsewhere"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(bad.error, match=bad.words) as caught:
        bad.attempt(tmp_path)
    assert type(caught.value) is bad.error
    assert list(empty.iterdir()) == [], "something was written into the working folder"


def test_the_corpus_is_large_and_its_names_are_unique():
    names = [bad.name for bad in CORPUS]
    assert len(set(names)) == len(names) >= 140
