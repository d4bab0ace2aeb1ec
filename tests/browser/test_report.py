"""The report in a browser: it works, nothing collides, in light and dark, on a phone and without scripts."""

import csv
import io
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from majorant import SparseSVC, SparseSVCCV, report, sparse_svc_path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="needs Chromium (Debian: apt install chromium chromium-driver)"
    ),
]
WIDTHS = [400, 1400]
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def driver():
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def _cancer():
    """Everything there is to show of two classes."""
    data = load_breast_cancer()
    X, y = scale(data.data), data.target_names[data.target]
    model = SparseSVCCV("l1", lambdas=20, cv=3, selection="1se").fit(X[:400], y[:400])
    return (model, X[:400], y[:400]), {
        "feature_names": data.feature_names, "X_test": X[400:], "y_test": y[400:], "command": "majorant demo",
        "path_result": sparse_svc_path(X, y, "l1", lambdas=20), "provenance": {"SHA-256": "0123456789" * 6},
    }  # fmt: skip


def _classes(n_classes, multi_class):
    X, y = make_classification(
        600, 80, n_informative=30, n_classes=n_classes, n_clusters_per_class=1, random_state=0
    )
    labels = np.array([f"a newsgroup with the number {k}" for k in range(n_classes)])
    model = SparseSVC("l1", lam=5.0, multi_class=multi_class).fit(X, labels[y])
    return (model, X, labels[y]), {
        "path_result": sparse_svc_path(X, y, "l1", lambdas=6, multi_class=multi_class)
    }


def _hostile():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    y = np.array([HOSTILE, "W" * 3000])[(X[:, 0] > 0).astype(int)]
    model = SparseSVC("l2", lam=1.0).fit(X, y)
    names = [HOSTILE, "W" * 10_000, "\u202eright to left שלום", "🦄" * 60]
    path = sparse_svc_path(X, y, "l1", lambdas=5)
    return (model, X, y), {
        "feature_names": names,
        "title": HOSTILE,
        "path_result": path,
        "command": "x " * 900,
    }


def _long():
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 3000), density=0.05, format="csr", rng=rng)
    y = rng.integers(0, 2, 100)
    return (SparseSVC("l2", lam=0.1).fit(X, y), X, y), {}


def _few():
    """Few rows, long names without a space, and a scaler."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((42, 6))
    y = np.array(["healthy", "ill"])[(X[:, 0] + X[:, 1] + 0.4 * rng.standard_normal(42) > 0).astype(int)]
    names = ["leucocytes_count", "systolic_blood_pressure", "ENSG00000141510_TP53", "a b c", "d", "glucose"]
    model = make_pipeline(StandardScaler(), SparseSVC("l1", lam=1.0)).fit(X[:30], y[:30])
    return (model, X[:30], y[:30]), {"feature_names": names, "X_test": X[30:], "y_test": y[30:]}


PAGES = {
    "few": _few,
    "cancer": _cancer,
    "three": lambda: _classes(3, "joint"),
    "twenty": lambda: _classes(20, "ovr"),
    "hostile": _hostile,
    "long": _long,
}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    directory = tmp_path_factory.mktemp("reports")
    paths = {}
    for name, make in PAGES.items():
        arguments, options = make()
        paths[name] = directory / f"{name}.html"
        report(*arguments, paths[name], **options)
    return paths


def visit(driver, path, width=1400, theme="light", scripts=True):
    device = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", device)
    features = [{"name": "prefers-color-scheme", "value": theme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    driver.get(path.as_uri())
    # A busy machine may still parse the page.
    WebDriverWait(driver, 60).until(lambda d: d.execute_script("return document.readyState") == "complete")


def visible_names(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('#coefficient-table tbody tr')].filter(row => !row.hidden)"
        ".map(row => row.querySelector('th').textContent)"
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_no_errors_no_overflow_nothing_on_top_of_another(driver, pages, name, width):
    visit(driver, pages[name], width)
    assert driver.get_log("browser") == []
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    wide = driver.execute_script(
        """
        return [...document.querySelectorAll("body *")].filter(element => {
          const box = element.getBoundingClientRect();
          return !element.closest(".scroll, svg, [hidden]") && (box.right > innerWidth + 1 || box.left < -1);
        }).map(element => element.outerHTML.slice(0, 200));
        """
    )
    assert wide == []
    collisions = driver.execute_script(
        """
        const hits = (a, b) => a.left < b.right - 0.5 && b.left < a.right - 0.5
          && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
        const found = [];
        const pairs = (elements, boxes) => {
          for (let i = 0; i < boxes.length; i++)
            for (let j = 0; j < i; j++)
              if (hits(boxes[i], boxes[j])) found.push([elements[i].outerHTML.slice(0, 150),
                                                        elements[j].outerHTML.slice(0, 150)]);
        };
        // A line of text is taller than its letters: only the middle of it counts.
        const middle = element => { const box = element.getBoundingClientRect();
          return { left: box.left, right: box.right, top: box.top + 0.15 * box.height,
                   bottom: box.bottom - 0.15 * box.height }; };
        for (const chart of document.querySelectorAll(".chart")) {
          const texts = [...chart.querySelectorAll("text")];
          pairs(texts, texts.map(middle));
          const frame = chart.closest("figure").getBoundingClientRect();
          for (const text of texts) { const box = text.getBoundingClientRect();
            if (box.left < frame.left || box.right > frame.right) found.push([text.outerHTML, "its frame"]); }
        }
        const blocks = [...document.querySelectorAll("header, section, footer")];
        pairs(blocks, blocks.map(block => block.getBoundingClientRect()));
        for (const pair of document.querySelectorAll(".pair")) {
          const children = [...pair.children];
          pairs(children, children.map(child => child.getBoundingClientRect()));
        }
        return found;
        """
    )
    assert collisions == []


def test_sorting_and_finding(driver, pages):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    visit(driver, pages["cancer"])
    names = visible_names(driver)
    assert len(names) > 5
    buttons = driver.find_elements(By.CSS_SELECTOR, "#coefficient-table thead button")
    by_name = next(button for button in buttons if button.text.startswith("Feature"))
    by_name.send_keys(Keys.ENTER)  # by the keyboard
    assert visible_names(driver) == sorted(names)
    header = by_name.find_element(By.XPATH, "..")
    assert header.get_attribute("aria-sort") == "ascending"
    by_name.click()
    assert visible_names(driver) == sorted(names, reverse=True)
    assert header.get_attribute("aria-sort") == "descending"

    by_value = next(button for button in buttons if button.text.startswith("Coefficient"))
    by_value.click()
    texts = driver.execute_script(
        "return [...document.querySelectorAll('#coefficient-table tbody tr')].map(r => r.cells[2].innerText)"
    )
    values = [float(text.replace("−", "-")) for text in texts]
    assert values == sorted(values)
    assert len(driver.find_elements(By.CSS_SELECTOR, "[aria-sort]")) == 1

    search = driver.find_element(By.ID, "search")
    search.send_keys("CONCAVE")
    assert visible_names(driver)
    assert all("concave" in name for name in visible_names(driver))
    search.clear()
    search.send_keys("no such feature")
    assert visible_names(driver) == []


def test_a_long_table_begins_short(driver, pages):
    from selenium.webdriver.common.by import By

    visit(driver, pages["long"])
    assert len(visible_names(driver)) == 25
    more = driver.find_element(By.ID, "more")
    assert more.text == "Show all 2,000"
    more.click()
    assert len(visible_names(driver)) == 2000
    assert not more.is_displayed()


def test_a_script_in_a_name_stays_text(driver, pages):
    from selenium.webdriver.support.expected_conditions import alert_is_present

    visit(driver, pages["hostile"])
    assert not alert_is_present()(driver)
    assert driver.execute_script("return [document.scripts.length, document.images.length]") == [1, 0]
    assert HOSTILE in visible_names(driver)
    assert driver.title == HOSTILE


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["cancer", "three"])
def test_text_has_contrast(driver, pages, name, theme):
    """By WCAG 2, 4.5 to 1 for all text, as the browser has computed its colours."""
    visit(driver, pages[name], theme=theme)
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    shade = sum(int(channel) for channel in ground.strip("rgb()").split(",")) / 3
    assert shade > 230 if theme == "light" else shade < 40
    faint = driver.execute_script(
        """
        const parse = text => text.match(/[\\d.]+/g).map(Number);
        const luminance = rgb => rgb.slice(0, 3).map(c => c / 255)
          .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
          .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const ground = element => { for (; element; element = element.parentElement) {
          const colour = parse(getComputedStyle(element).backgroundColor);
          if (colour.length === 3 || colour[3] > 0) return colour; } };
        const faint = [];
        for (const element of document.querySelectorAll("body *")) {
          if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
          if (element.matches("title, desc, script") || element.closest("[hidden]")) continue;
          const style = getComputedStyle(element);
          const ink = parse(element.matches("svg *") ? style.fill : style.color);
          const [a, b] = [luminance(ink), luminance(ground(element))].sort((x, y) => y - x);
          if ((a + 0.05) / (b + 0.05) < 4.5) faint.push([element.outerHTML.slice(0, 120), style.color]);
        }
        return faint;
        """
    )
    assert faint == []


def test_without_scripts_everything_is_there(driver, pages):
    from selenium.webdriver.common.by import By

    try:
        visit(driver, pages["long"], scripts=False)
        rows = driver.find_elements(By.CSS_SELECTOR, "#coefficient-table tbody tr")
        assert len(rows) == 2000
        assert rows[1999].is_displayed()
        assert not driver.find_element(By.ID, "tools").is_displayed()
        assert driver.find_elements(By.TAG_NAME, "button")[0].is_displayed() is False
        # Margins, two curves, six features, and two folded charts of the convergence.
        assert len(driver.find_elements(By.CSS_SELECTOR, "svg.chart")) == 11
    finally:
        visit(driver, pages["long"])


def _csv_expected(driver):
    return driver.execute_script(
        "return [...document.querySelectorAll('#coefficient-table tbody tr')]"
        ".map(row => [row.querySelector('th').textContent, row.dataset.values.split(' ').map(Number)])"
    )


@pytest.mark.parametrize("name", ["cancer", "three", "hostile"])
def test_the_table_is_copied_as_csv(driver, pages, name):
    from selenium.webdriver.common.by import By

    visit(driver, pages[name])
    driver.execute_script(
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value:"
        " { writeText: text => { window.copied = text; return Promise.resolve(); } } });"
    )
    driver.find_element(By.ID, "search").send_keys("no such feature")  # the whole table is copied
    driver.find_element(By.ID, "copy").click()
    header, *rows = list(csv.reader(io.StringIO(driver.execute_script("return window.copied"))))
    assert header[0] == "feature"
    found = [[row[0], [float(value) for value in row[1:]]] for row in rows]
    assert found == _csv_expected(driver)
    assert all(len(row) == len(header) for row in rows)
    if name == "three":
        assert header[1:4] == [f"a newsgroup with the number {k}" for k in range(3)]
    WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "copy").text == "Copied")


def test_copying_works_without_the_clipboard_api(driver, pages):
    from selenium.webdriver.common.by import By

    visit(driver, pages["few"])
    driver.execute_script(
        "Object.defineProperty(navigator, 'clipboard', { configurable: true, value: undefined });"
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value; });"
    )
    driver.find_element(By.ID, "copy").click()
    copied = driver.execute_script("return window.copied")
    assert copied.startswith("feature,coefficient\n")
    assert copied.count("\n") == len(_csv_expected(driver)) + 1


def test_the_table_is_downloaded_as_csv(driver, pages, tmp_path):
    from selenium.webdriver.common.by import By

    visit(driver, pages["few"])
    driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    driver.find_element(By.ID, "download").click()
    path = tmp_path / "coefficients.csv"
    WebDriverWait(driver, 30).until(lambda _: path.exists() and path.read_text().endswith("\n"))
    lines = path.read_text().splitlines()
    assert lines[0] == "feature,coefficient"
    assert len(lines) == len(_csv_expected(driver)) + 1


def test_convergence_opens_by_its_link_and_on_paper(driver, pages):
    from selenium.webdriver.common.by import By

    visit(driver, pages["cancer"])
    chart = driver.find_element(By.CSS_SELECTOR, "#convergence .chart")
    assert not chart.is_displayed()
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    assert chart.is_displayed()
    driver.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert not chart.is_displayed()
    driver.find_element(By.CSS_SELECTOR, "nav a[href='#convergence']").click()
    assert chart.is_displayed()


def test_a_wide_table_says_so_until_its_end(driver, pages):
    visit(driver, pages["twenty"], width=400)
    state = (
        "return [...document.querySelectorAll('.scroll')].map(region =>"
        " [region.scrollWidth > region.clientWidth + 1, !region.previousElementSibling.hidden,"
        " region.classList.contains('fade')])"
    )
    WebDriverWait(driver, 10).until(lambda d: all(a == b == c for a, b, c in d.execute_script(state)))
    regions = driver.execute_script(state)
    assert any(wide for wide, _, _ in regions)
    assert not all(wide for wide, _, _ in regions)
    driver.execute_script(
        "document.querySelectorAll('.scroll').forEach(region => { region.scrollLeft = 1e6; })"
    )
    WebDriverWait(driver, 10).until(
        lambda d: all(wide == hint and not fade for wide, hint, fade in d.execute_script(state))
    )
    # The names stay in sight.
    left = driver.execute_script(
        "return document.querySelector('.heat tbody th').getBoundingClientRect().left"
    )
    assert left >= 0.0


@pytest.mark.parametrize("page", ["few", "cancer"])
def test_names_are_not_broken_and_bars_have_a_width_on_a_phone(driver, pages, page):
    visit(driver, pages[page], width=390)
    region = "document.querySelector('.scroll')"
    assert driver.execute_script(f"return {region}.scrollWidth <= {region}.clientWidth")
    rows = driver.execute_script(
        "return [...document.querySelectorAll('#coefficient-table tbody tr')].map(row => {"
        " const name = row.querySelector('bdi'), style = getComputedStyle(name);"
        " return [name.textContent, name.getBoundingClientRect().height / parseFloat(style.lineHeight),"
        "  row.querySelector('.bar').getBoundingClientRect().width]; })"
    )
    assert len(rows) >= 4
    for name, lines, width in rows:
        assert lines < (2.5 if " " in name else 1.5), name
        assert width >= 40.0


def test_in_a_notebook_the_page_works_in_its_frame(driver, pages, tmp_path):
    from selenium.webdriver.common.by import By

    arguments, options = _few()
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f"<!DOCTYPE html><meta charset=utf-8><p>A cell</p>{report(*arguments, **options)._repr_html_()}",
        encoding="utf-8",
    )
    visit(driver, notebook)
    assert driver.get_log("browser") == []
    driver.switch_to.frame(0)
    try:
        assert "leucocytes_count" in visible_names(driver)
        driver.find_element(By.CSS_SELECTOR, "nav a[href='#convergence']").click()
        assert driver.find_element(By.CSS_SELECTOR, "#convergence .chart").is_displayed()
        place = "return document.getElementById('convergence').getBoundingClientRect().top"
        assert abs(driver.execute_script(place)) < 400
        driver.find_element(By.ID, "copy").click()
        WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "copy").text == "Copied")
    finally:
        driver.switch_to.default_content()


def test_on_paper_it_is_light_and_complete(driver, pages):
    visit(driver, pages["cancer"], theme="dark")
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    assert (
        driver.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert driver.execute_script("return getComputedStyle(document.querySelector('nav')).display") == "none"
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
