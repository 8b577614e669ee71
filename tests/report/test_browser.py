"""The page in headless Chromium: it draws, answers clicks and keys, and stays silent on the console.

``MILEGPO_SCREENSHOTS=FOLDER`` keeps the screenshots.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from milegpo_plugin.config import CreditConfig
from milegpo_plugin.report.page import write_report, write_run_report
from milegpo_plugin.types import Trajectory

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser"), pytest.mark.timeout(900)]

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
WIDE, TALL, NARROW = (1440, 1000), (1440, 1290), (420, 900)
SECONDS = 120
DRIVER_SECONDS = 400  # a busy machine may need longer than the two minutes that Selenium grants


class Browser:
    """A page in Chromium, and what it said on the console."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(program("chromedriver")))
        self.driver.command_executor.client_config.timeout = DRIVER_SECONDS

    def open(
        self, page: Path, address: str = "", *, size: tuple[int, int] = WIDE, dark: bool = False
    ) -> None:
        self.resize(*size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.driver.get(f"{page.as_uri()}{address}")
        self.wait("return document.body.dataset.ready === 'true'")

    def resize(self, width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def wait(self, script: str) -> None:
        WebDriverWait(self.driver, SECONDS).until(lambda driver: driver.execute_script(script))

    def run(self, script: str) -> Any:
        return self.driver.execute_script(script)

    def click(self, selector: str) -> None:
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def text(self, selector: str) -> str:
        return self.driver.find_element(By.CSS_SELECTOR, selector).text

    def keys(self, *keys: str) -> None:
        webdriver.ActionChains(self.driver).send_keys(*keys).perform()

    def console(self) -> list[Any]:
        return self.driver.get_log("browser")

    def requests(self) -> list[str]:
        """Addresses of everything that the page asked for over a network."""
        events = [entry["message"] for entry in self.driver.get_log("performance")]
        return [event for event in events if "requestWillBeSent" in event and '"url":"http' in event]


def program(name: str) -> str:
    path = shutil.which(name)
    assert path, (
        f"{name} is not installed: run make test-browser, or apt-get install chromium chromium-driver"
    )
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.driver.quit()


@pytest.fixture(scope="module")
def page(
    tmp_path_factory: pytest.TempPathFactory,
    play_houses: Callable[..., list[Trajectory]],
    save: Callable[[Path, list[Trajectory]], Path],
) -> Path:
    folder = tmp_path_factory.mktemp("report")
    source = save(folder / "houses.jsonl", play_houses(16, 8, 50))
    write_report(
        [source], folder / "report.html", config=CreditConfig(), compare=CreditConfig(estimator="grpo")
    )
    return folder / "report.html"


@pytest.fixture
def shoot(browser: Browser, tmp_path: Path) -> Callable[[str], Path]:
    folder = Path(os.environ.get("MILEGPO_SCREENSHOTS", tmp_path))

    def take(name: str) -> Path:
        path = folder / f"report-{name}.png"
        browser.driver.save_screenshot(str(path))
        Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE).save(path, optimize=True)
        return path

    return take


def test_the_page_draws_and_the_console_stays_empty_without_any_request(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert browser.run("return document.querySelectorAll('#graph .scatterlayer .trace').length") > 3
    assert browser.run("return document.querySelectorAll('.cell').length") > 100
    assert browser.console() == []
    assert browser.requests() == []


def test_the_first_paint_does_not_wait_for_plotly(browser: Browser, page: Path) -> None:
    browser.open(page)
    paint = browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 5000


def test_a_click_on_a_rollout_lights_its_path_and_lists_its_steps(browser: Browser, page: Path) -> None:
    browser.open(page)
    before = browser.run("return document.querySelectorAll('#graph .scatterlayer .trace').length")
    browser.click(".who[data-rollout='2']")
    assert browser.run("return document.querySelectorAll('#graph .scatterlayer .trace').length") == before + 1
    assert "its steps" in browser.text("#panel")
    browser.click("#clear")
    assert browser.run("return document.querySelectorAll('#graph .scatterlayer .trace').length") == before


def test_a_click_on_a_step_explains_its_advantage(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click(".cell[data-rollout='1'][data-step='3']")
    panel = browser.text("#panel")
    assert "Step 4 of" in panel
    for part in ("distance", "milestones", "rollout's score", "why this step?", "action", "observation"):
        assert part in panel


def test_another_group_is_shown_when_it_is_picked(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.click("[data-group='11']")
    assert browser.text("#task").startswith("house 11")
    assert browser.run("return document.querySelectorAll('#groups [aria-current]').length") == 1
    assert "group=11" in browser.driver.current_url


def test_keys_move_between_groups_rollouts_and_steps(browser: Browser, page: Path) -> None:
    browser.open(page, "#group=3")
    browser.keys("]")
    assert browser.text("#task").startswith("house 04")
    browser.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert "Step 1 of" in browser.text("#panel")
    browser.keys(Keys.ARROW_RIGHT)
    assert "Step 2 of" in browser.text("#panel")
    browser.keys(Keys.ESCAPE)
    assert browser.run("return document.querySelectorAll('.cell[aria-current]').length") == 0


def test_search_finds_a_state_and_leads_to_it(browser: Browser, page: Path) -> None:
    browser.open(page)
    browser.keys("/")
    browser.keys("Crawlspace")
    browser.click("#hits button")
    assert "crawlspace" in browser.text("#panel")
    assert browser.console() == []


def test_a_state_shows_its_text_and_scores_when_the_mouse_is_over_it(
    browser: Browser, page: Path, shoot: Callable[[str], Path]
) -> None:
    browser.open(page)
    browser.run("document.getElementById('graph').scrollIntoView({block: 'center'})")
    star = browser.driver.find_elements(
        By.CSS_SELECTOR, "#graph .scatterlayer .trace:last-child .points path"
    )[0]
    webdriver.ActionChains(browser.driver).move_to_element(star).perform()
    browser.wait("return document.querySelector('.hoverlayer .hovertext') !== null")
    hover = browser.text(".hoverlayer")
    assert "You are in the" in hover
    assert "interval" in hover
    shoot("hover")


def test_a_link_with_a_selection_opens_on_it(browser: Browser, page: Path) -> None:
    browser.open(page, "#group=5&rollout=2&step=9")
    assert browser.text("#panel").splitlines()[1].startswith("Step 10")


@pytest.mark.parametrize(
    ("name", "size", "dark"), [("page", TALL, False), ("dark", TALL, True), ("narrow", NARROW, False)]
)
def test_nothing_is_cut_off_or_left_blank(
    browser: Browser, page: Path, shoot: Callable[[str], Path], name: str, size: tuple[int, int], dark: bool
) -> None:
    browser.open(page, "#group=5&rollout=6&step=8", size=size, dark=dark)
    browser.run("document.getElementById('task').scrollIntoView()")
    assert browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    image = Image.open(shoot(name)).convert("L")
    low, high = image.getextrema()
    assert high - low > 150
    assert (image.getpixel((2, size[1] // 2)) < 60) is dark


def test_a_run_draws_its_curves_and_groups(
    browser: Browser, tmp_path: Path, make_run: Callable[..., Path], shoot: Callable[[str], Path]
) -> None:
    run = make_run(tmp_path / "houses")
    write_run_report(run)
    browser.open(run / "report.html", dark=True)
    assert browser.run("return document.querySelectorAll('[data-figure] .main-svg').length") >= 6
    assert "iteration 5" in browser.text("#task")
    assert browser.console() == []
    shoot("run")


def test_a_page_of_a_running_run_loads_itself_again_and_keeps_the_selection(
    browser: Browser, tmp_path: Path, make_run: Callable[..., Path]
) -> None:
    run = make_run(tmp_path / "run", done=2)
    write_run_report(run, refresh=1, title="goes on")
    browser.open(run / "report.html", "#group=1&rollout=2")
    write_run_report(run, title="done")
    browser.wait("return document.title === 'done' && document.body.dataset.ready === 'true'")
    assert "group=1&rollout=2" in browser.driver.current_url
    assert browser.text("#task").startswith("iteration 1 · house 01")


def test_hostile_text_neither_runs_nor_shows_as_markup(
    browser: Browser,
    tmp_path: Path,
    save: Callable[[Path, list[Trajectory]], Path],
    hostile_batch: Callable[[], list[Trajectory]],
) -> None:
    source = save(tmp_path / "hostile.jsonl", hostile_batch())
    write_report([source], tmp_path / "report.html", config=CreditConfig())
    browser.open(tmp_path / "report.html")
    browser.click(".cell")
    browser.click(".who")
    assert browser.run("return window.pwned") is None
    assert browser.run("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert browser.console() == []
    assert browser.requests() == []
