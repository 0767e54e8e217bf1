"""A real browser that a test drives: Chromium through Debian's chromedriver and Selenium."""

import shutil

CHROMIUM = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None
MISSING = None if CHROMIUM and DRIVER and webdriver else "no chromium, chromedriver or selenium: run deploy/install-deps --ci"


def start(folder, width=1280, height=1000):
    """Starts a browser that keeps its files and downloads in `folder`. The caller calls its quit()."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={folder}/browser")
    options.add_experimental_option("prefs", {"download.default_directory": str(folder), "download.prompt_for_download": False})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    return driver
