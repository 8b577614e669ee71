"""What the pages say of dialects, captures, forms and flags is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.dialect_table import make_table, page_with, table_rows
from milegpo_plugin.adapters import DIALECTS
from milegpo_plugin.flags import FLAGS
from milegpo_plugin.spans.documents import READERS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def read():
    return lambda name: (DOCS / name).read_text(encoding="utf-8")


def test_every_dialect_has_a_row_in_the_order_of_the_registry(read):
    rows = table_rows(read("dialects.md"), "## Dialects")
    assert [row[0] for row in rows] == [f"`{dialect.name}`" for dialect in DIALECTS]


def test_the_table_of_captures_is_what_the_captures_give(read):
    page = read("dialects.md")
    assert page == page_with(make_table(), page), "run: python -m benchmarks.dialect_table --write"


def test_every_form_of_a_file_has_a_row(read):
    rows = table_rows(read("dialects.md"), "## Forms of files")
    assert [row[0] for row in rows] == [reader.form for reader in READERS]


def test_every_flag_has_a_row_with_its_meaning_and_cure(read):
    rows = table_rows(read("flags.md"), "# Flags")
    assert rows == [[f"`{name}`", flag.meaning, flag.cure] for name, flag in sorted(FLAGS.items())]


@pytest.mark.parametrize("name", ["dialects.md", "trainable_traces.md"])
def test_flags_that_a_page_names_exist(name, read):
    flag_like = set(
        re.findall(r"`((?:no|missing|partial|dropped|truncated|orphan|mid|unasked)_\w+)`", read(name))
    )
    assert flag_like <= FLAGS.keys()
    assert flag_like


def test_the_dialect_of_the_page_works(read, make_call):
    code = re.search(r"```python\n(.*?)```", read("dialects.md"), re.DOTALL)[1]
    names: dict = {}
    exec("\n".join(line.removeprefix("   ") for line in code.splitlines()), names)
    dialect = names["MyFramework"]()
    call = make_call([("user", "hello")], "hi", scope="my-framework")
    assert dialect.recognises(call)
    assert not dialect.recognises(make_call([("user", "hello")], "hi"))
