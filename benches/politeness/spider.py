"""Fetches `urls.txt` with Scrapy, set up in one of three ways (see `client.rs`)."""

import json
import sys
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess

COMMON = {
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": False,
    "TELNETCONSOLE_ENABLED": False,
}


def informed():
    """Each host's slot waits 1/rate between two requests. Somebody who knows the rates would also
    lift the other limits out of the way, pick the queue that is advised for many hosts, and let a
    refused request be tried again for long."""
    slots = {
        known["host"]: {"delay": 1 / known["rate"], "concurrency": 64, "randomize_delay": False}
        for known in json.loads(Path("hosts.json").read_text())
    }
    return {
        "AUTOTHROTTLE_ENABLED": False,
        "CONCURRENT_REQUESTS": 1000,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
        "DOWNLOAD_SLOTS": slots,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "RETRY_TIMES": 20,
        "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    }


SETTINGS = {
    "scrapy-informed": informed,
    "scrapy-autothrottle": lambda: {"AUTOTHROTTLE_ENABLED": True},
    "scrapy-default": dict,
}


class Pages(scrapy.Spider):
    name = "pages"

    async def start(self):
        for url in Path("urls.txt").read_text().split():
            yield scrapy.Request(url)

    def start_requests(self):
        # Scrapy before 2.13.
        for url in Path("urls.txt").read_text().split():
            yield scrapy.Request(url)

    def parse(self, response):
        pass


process = CrawlerProcess(COMMON | SETTINGS[sys.argv[1]]())
process.crawl(Pages)
process.start()
