"""Invented e-mails: what is promised of them, and that what was written is read."""

import pytest

from csdpp.datasets import read_mails, write_mails
from csdpp.datasets.mails import _WORDS, LATE_FOLDER
from csdpp.errors import InvalidParameter, MissingData


def test_what_is_written_is_read(tmp_path):
    names = write_mails(tmp_path / "a" / "inbox", 200, random_state=3)
    mails = list(read_mails(tmp_path / "a" / "inbox"))
    assert [mail.name for mail in mails] == [f"{i:05}.eml" for i in range(200)]
    assert names == list(_WORDS)
    assert all(1 <= len(mail.folders) <= 4 and set(mail.folders) <= set(names) for mail in mails)
    words = {name: set(own.split()) for name, own in _WORDS.items()}
    for mail in mails:
        said = set(mail.text.split())
        assert all(words[name] & said for name in mail.folders)
        assert not any(words[name] & said for name in set(names) - set(mail.folders))


def test_a_folder_comes_late_and_words_change(tmp_path):
    write_mails(tmp_path, 400, random_state=0)
    mails = list(read_mails(tmp_path))
    assert not any(LATE_FOLDER in mail.folders for mail in mails[:200])
    assert any(LATE_FOLDER in mail.folders for mail in mails[200:240])
    own = set(_WORDS["work"].split())
    before, after = (set().union(*(mail.text.split() for mail in part)) & own for part in (mails[:300], mails[300:]))
    assert before - after
    assert after - before
    assert before & after


def test_the_same_seed_gives_the_same_mails(tmp_path):
    for name in ("a", "b"):
        write_mails(tmp_path / name, 5, random_state=1)
    assert [m.text for m in read_mails(tmp_path / "a")] == [m.text for m in read_mails(tmp_path / "b")]


def test_what_cannot_be_is_said(tmp_path):
    with pytest.raises(InvalidParameter, match=r"n must be a whole number from 1 to 1,000,000, got 0"):
        write_mails(tmp_path, 0)
    with pytest.raises(MissingData, match=r"has no files that end in \.eml; write_mails makes some"):
        list(read_mails(tmp_path))
