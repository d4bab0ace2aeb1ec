"""Text from files, made safe to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from majorant.datasets.options import ReadOptions, choose_columns
from majorant.errors import DataFileError, ModelFileError
from majorant.persistence import strict
from majorant.text import first_duplicate, printable

ORDERS = {
    "colour": "\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://example.org\x1b\\here\x1b]8;;\x1b\\",
    "eight bits": "\x9b2J\x9d0;title\x9c",
    "cursor": "wrong\r\x1b[2Kright\b\b",
    "lines": "one\ntwo\x0bthree\x85four\u2028five\u2029six",
    "backwards": "\u202egnp.exe\u202c \u2066x\u2069",
    "nul": "a\0b\x7f",
}


@pytest.mark.parametrize("name", ORDERS)
def test_orders_to_a_terminal_become_text(name):
    shown = printable(ORDERS[name])
    assert not set(shown) & set("\x1b\x07\x08\x9b\x9c\x9d\r\n\0\x7f\x85\u2028\u2029\u202e\u202c\u2066\u2069")
    assert len(shown.splitlines()) == 1
    assert len(shown) == len(ORDERS[name])


@pytest.mark.parametrize("text", ["", "plain", "naïve Ω", "شكرا", "🏳️‍🌈", "न्‍य", "no\u00a0break", "1e-3 & <b>"])
def test_text_stays_as_it_is(text):
    assert printable(text) == text


@given(st.text(st.characters()))
def test_any_text_is_one_line_that_can_be_encoded(text):
    shown = printable(text)
    assert len(shown.encode("utf-8").decode("utf-8").splitlines()) <= 1
    assert printable(shown) == shown
    assert len(shown) == len(text)


class Compared(str):
    """A name that counts how often it is compared with another."""

    count = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Compared.count += 1
        return str.__eq__(self, other)


def _twice_in_an_object(names):
    with pytest.raises(ModelFileError, match="'999' is there twice"):
        strict._object([(name, 0) for name in names])


def _twice_in_a_table(names):
    with pytest.raises(DataFileError, match="two columns have the name '999'"):
        choose_columns(names, ReadOptions(), "file", 1)


@pytest.mark.parametrize(
    "search",
    [
        first_duplicate,
        _twice_in_an_object,
        _twice_in_a_table,
        lambda names: choose_columns(names[:-1], ReadOptions(label="0", drop=tuple(names[1:500])), "file", 1),
    ],
    ids=["alone", "keys", "columns", "drop"],
)
def test_names_are_not_compared_each_with_each(search):
    """Of 1000 names, 500,000 comparisons would be a file that takes the time of a life to refuse."""
    names = [Compared(str(k)) for k in range(1000)]
    Compared.count = 0
    search([*names, Compared("999")])
    assert Compared.count < 10_000
