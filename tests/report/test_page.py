"""The page as a file: self-contained, bounded, complete, the same for the same batch."""

from __future__ import annotations

import base64
import gzip
import hashlib
import random
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import orjson
import pytest
from plotly.offline import get_plotlyjs

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.errors import CreditError, InputNotFoundError, TraceError
from milegpo_plugin.report.document import MAX_BYTES
from milegpo_plugin.report.page import write_report
from milegpo_plugin.types import Action, Step, Trajectory

LOADING = {"src", "href", "srcset", "action", "data", "poster", "background", "formaction"}


class Page(HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.blocks: dict[str, list[str]] = {}
        self.words: list[str] = []
        self._inside = ""
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag in ("script", "style"):
            self._inside = dict(attrs).get("id") or tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.blocks.setdefault(self._inside, []).append(data)
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def payload(self, name: str) -> bytes:
        return gzip.decompress(base64.b64decode("".join(self.blocks[name])))

    @property
    def data(self) -> Any:
        return orjson.loads(self.payload("data"))


@pytest.fixture
def write(
    tmp_path: Path, save: Callable[[Path, list[Trajectory]], Path]
) -> Callable[[list[Trajectory]], Page]:
    def build(batch: list[Trajectory], **options: Any) -> Page:
        source = save(tmp_path / "batch.jsonl", batch)
        write_report([source], tmp_path / "report.html", **{"config": CreditConfig(), **options})
        return Page(tmp_path / "report.html")

    return build


@pytest.fixture(scope="module")
def houses(
    tmp_path_factory: pytest.TempPathFactory,
    play_houses: Callable[..., list[Trajectory]],
    save: Callable[[Path, list[Trajectory]], Path],
) -> Path:
    folder = tmp_path_factory.mktemp("houses")
    source = save(folder / "houses.jsonl", play_houses(16, 8, 50))
    write_report(
        [source], folder / "report.html", config=CreditConfig(), compare=CreditConfig(estimator="grpo")
    )
    return folder / "report.html"


def test_a_batch_of_128_rollouts_of_50_steps_stays_under_5_megabytes(houses: Path) -> None:
    assert houses.stat().st_size < 5_000_000
    assert sum(len(group["rollouts"]) for group in Page(houses).data["groups"]) == 128


def test_the_page_loads_nothing(houses: Path) -> None:
    page = Page(houses)
    loaded = [value for _, name, value in page.attributes if name in LOADING]
    assert [value for value in loaded if not (value or "").startswith(("#", "data:,"))] == []
    own = "".join([*page.blocks["style"], *page.blocks["script"]])
    assert re.findall(r"@import|url\(|https?://|fetch\(|XMLHttpRequest|WebSocket|innerHTML|eval\(", own) == []


def test_the_policy_of_the_page_admits_its_own_scripts_only(houses: Path) -> None:
    page = Page(houses)
    policy = next(
        value for _, name, value in page.attributes if name == "content" and "default-src" in str(value)
    )
    own = "".join(page.blocks["script"])
    plotly = page.payload("plotly").decode()
    assert plotly == get_plotlyjs()
    for script in (own, plotly):
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in str(policy)
    assert "default-src 'none'" in str(policy)
    assert "unsafe-eval" not in str(policy)


def test_the_head_of_the_page_tells_the_figures_of_the_batch(houses: Path) -> None:
    text = Page(houses).text
    for words in (
        "rollouts 128 16 tasks",
        "success 33.6% 43 of 128",
        "coverage",
        "groups without signal 2 of 16",
    ):
        assert words in text
    assert "Strongest milestones of the batch" in text
    assert "Strongest traps of the batch" in text


def test_every_group_can_be_picked(houses: Path) -> None:
    buttons = [value for _, name, value in Page(houses).attributes if name == "data-group"]
    assert buttons == [str(number) for number in range(16)]


def test_the_data_of_a_step_says_what_it_did_what_it_saw_and_why(houses: Path) -> None:
    group = Page(houses).data["groups"][0]
    rollout = group["rollouts"][0]
    assert group["texts"][rollout["seen"][0]].startswith("user: Find the brass key")
    assert group["texts"][rollout["action"][0]].startswith("go(to=")
    assert group["edges"][rollout["edge"][0]]["why"]
    total = rollout["graph"][0] + rollout["milestone"][0] + rollout["episode"][0]
    assert total == pytest.approx(rollout["advantage"][0], abs=1e-3)


def test_two_estimators_are_compared_where_they_differ_most(houses: Path) -> None:
    page = Page(houses)
    assert "milegpo against grpo" in page.text
    places = [value for _, name, value in page.attributes if name == "data-go"]
    assert places
    group, rollout, step = map(int, str(places[0]).split())
    shown = page.data["groups"][group]["rollouts"][rollout]
    assert shown["other"][step] != shown["advantage"][step]


def test_without_a_second_estimator_nothing_is_compared(
    write: Callable[..., Page], fork: Callable[[], list[Trajectory]]
) -> None:
    page = write(fork())
    assert "against" not in page.text
    assert page.data["groups"][0]["rollouts"][0]["other"] is None


def test_the_same_batch_gives_the_same_page_in_any_order(
    write: Callable[..., Page], play_houses: Callable[..., list[Trajectory]]
) -> None:
    batch = play_houses(3)
    first = write(batch).source
    random.Random(0).shuffle(batch)
    assert write(batch).source == first


@pytest.mark.parametrize("estimator", ["milegpo", "graphgpo", "plangpo", "gigpo", "hgpo", "grpo", "rloo"])
def test_every_estimator_has_a_page(
    write: Callable[..., Page], fork: Callable[[], list[Trajectory]], estimator: str
) -> None:
    page = write(fork(), config=CreditConfig.load({"estimator": estimator}))
    assert len(page.data["groups"][0]["rollouts"]) == 4
    assert f"estimator {estimator}" in page.text


def test_a_batch_too_large_for_a_page_is_sampled_and_says_so(
    write: Callable[..., Page], play_houses: Callable[..., list[Trajectory]]
) -> None:
    page = write(play_houses(50, 8, 6))
    shown = sum(len(group["rollouts"]) for group in page.data["groups"])
    assert shown < 400
    assert f"A sample is shown: {shown // 8} of 50 groups, {shown} of 400 rollouts" in page.text
    assert "rollouts 400" in page.text


def test_long_texts_that_do_not_compress_are_cut_until_the_page_fits(
    write: Callable[..., Page], tmp_path: Path
) -> None:
    draw = random.Random(0)
    batch = [
        Trajectory(
            task_id="noise",
            rollout_id=f"r{number}",
            reward=float(number % 2),
            steps=[Step(state="s", action=Action(text=draw.randbytes(2000).hex())) for _ in range(120)],
        )
        for number in range(16)
    ]
    page = write(batch)
    assert len(page.source.encode()) <= MAX_BYTES
    assert "more characters" in page.data["groups"][0]["texts"][0]


def test_what_was_left_out_is_listed_with_its_reason(
    write: Callable[..., Page], fork: Callable[[], list[Trajectory]]
) -> None:
    broken = Trajectory(task_id="fork", rollout_id="broken", flags=["failed"], steps=[Step(state="start")])
    page = write([*fork(), broken])
    assert "left out 1" in page.text
    assert "rollout 1 failed broken" in page.text
    assert "the rollout ended with an infrastructure error" in page.text


def test_advice_stands_at_the_head(write: Callable[..., Page], fork: Callable[[], list[Trajectory]]) -> None:
    lonely = [t.model_copy(update={"task_id": t.rollout_id}) for t in fork()]
    assert "--task-attribute" in write(lonely).text


def test_settings_that_differ_from_the_defaults_are_shown(
    write: Callable[..., Page], fork: Callable[[], list[Trajectory]]
) -> None:
    text = write(fork(), config=CreditConfig.preset("webshop", stage="rcs")).text
    assert "mix_weight 1.0" in text
    assert "milegpo (rcs)" in text


def test_a_missing_folder_is_one_clear_error(
    tmp_path: Path, fork: Callable[[], list[Trajectory]], save: Callable[[Path, list[Trajectory]], Path]
) -> None:
    source = save(tmp_path / "batch.jsonl", fork())
    with pytest.raises(InputNotFoundError, match="no such folder"):
        write_report([source], tmp_path / "missing" / "report.html", config=CreditConfig())
    with pytest.raises(InputNotFoundError, match="no such file"):
        write_report([tmp_path / "absent.jsonl"], tmp_path / "report.html", config=CreditConfig())


def test_a_failure_leaves_the_old_page_as_it_was(
    tmp_path: Path, fork: Callable[[], list[Trajectory]], save: Callable[[Path, list[Trajectory]], Path]
) -> None:
    output = tmp_path / "report.html"
    output.write_text("old", encoding="utf-8")
    unknown = [trajectory.model_copy(update={"reward": None}) for trajectory in fork()]
    with pytest.raises(CreditError, match="no outcomes"):
        write_report([save(tmp_path / "batch.jsonl", unknown)], output, config=CreditConfig())
    (tmp_path / "empty.jsonl").write_text("\n", encoding="utf-8")
    with pytest.raises(TraceError):
        write_report([tmp_path / "empty.jsonl"], output, config=CreditConfig())
    assert output.read_text(encoding="utf-8") == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["batch.jsonl", "empty.jsonl", "report.html"]


def test_hostile_text_stays_text(
    write: Callable[..., Page],
    hostile_batch: Callable[[], list[Trajectory]],
    fork: Callable[[], list[Trajectory]],
) -> None:
    harmless, hostile = write(fork()), write(hostile_batch())
    assert set(hostile.tags) == set(harmless.tags)
    assert hostile.tags.count("script") == 3
    assert not any(name.startswith("on") for _, name, _ in hostile.attributes)
    assert "{{ 7*7 }}" in hostile.text
    assert "49" not in hostile.text.split("Groups")[1][:400]


def test_a_million_characters_are_cut_and_control_characters_are_made_visible(
    write: Callable[..., Page], hostile_batch: Callable[[], list[Trajectory]]
) -> None:
    page = write(hostile_batch())
    assert len(page.source.encode()) <= MAX_BYTES
    texts = "\n".join(page.data["groups"][0]["texts"])
    assert re.search(r"\d{3},\d{3} more characters", texts)
    assert "bell ⟨U+0007⟩ escape ⟨U+001B⟩" in texts
    assert "⟨U+202E⟩gnp.exe⟨U+202C⟩ שלום" in texts
    assert "👩‍👩‍👧‍👦" in texts
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", page.source + texts)
