#!/usr/bin/env python3
"""What a run brought, and how fast: reads results.jsonl with pandas.

    python3 examples/python/results.py crawl/results.jsonl --every 1min

Debian has it as python3-pandas.
"""

import argparse
import sys

try:
    import pandas as pd
except ModuleNotFoundError:
    sys.exit("results.py needs pandas: apt install python3-pandas, or pip install pandas")

TIMES = ["queued_at", "started_at", "completed_at"]


def read(path):
    """The last result of each id: a refresh adds lines, and the last one counts."""
    # Ids and statuses stay what they are: pandas would take an id of digits for a number.
    results = pd.read_json(path, lines=True, dtype=False, convert_dates=False)
    if results.empty:
        sys.exit(f"{path}: no task is complete yet")
    for name in TIMES:
        results[name] = pd.to_datetime(results[name], utc=True)
    return results.drop_duplicates("id", keep="last")


def by_target(results):
    # A task that ended without a call has no target.
    groups = results.fillna({"target": "(none)"}).groupby(["target", "outcome"])
    seconds = (results["completed_at"] - results["started_at"]).dt.total_seconds()
    return groups.agg(
        tasks=("id", "size"),
        attempts=("attempts", "sum"),
        deferrals=("deferrals", "sum"),
        bytes=("bytes", "sum"),
    ).join(
        seconds.groupby([results["target"].fillna("(none)"), results["outcome"]])
        .median()
        .rename("median_seconds")
    )


def throughput(results, every):
    return results.set_index("completed_at").resample(every).agg({"id": "size", "bytes": "sum"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", help="a results.jsonl")
    parser.add_argument("--every", default="1min", help="width of a row of the throughput")
    args = parser.parse_args()
    results = read(args.results)
    pd.set_option("display.width", 200, "display.max_rows", 100)
    print(by_target(results).to_string())
    print()
    per_window = throughput(results, args.every).rename(columns={"id": "tasks"})
    print(per_window.to_string())
    print()
    failed = results[results["error"].notna()]
    print(f"{len(results)} tasks, {len(failed)} with an error")
    for words, count in failed["error"].value_counts().head(10).items():
        print(f"  {count:6} {words}")


if __name__ == "__main__":
    main()
