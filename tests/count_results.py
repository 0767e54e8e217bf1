#!/usr/bin/env python3
"""Counts test cases from the build events of `bazel test`: prints the failed and skipped ones, then "N passed, N failed, N skipped".

Usage: count_results.py EVENTS.json (written by --build_event_json_file). Exit 1 if a case failed or none ran.
"""

import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree


def results(events):
    """Yields (target, status, path of test.xml or None) for each finished test action."""
    for line in events:
        event = json.loads(line)
        label = event.get("id", {}).get("testResult", {}).get("label")
        if label:
            outputs = {output["name"]: output.get("uri", "") for output in event["testResult"].get("testActionOutput", [])}
            path = urllib.parse.unquote(urllib.parse.urlparse(outputs.get("test.xml", "")).path)
            yield label, event["testResult"]["status"], path or None
        elif event.get("aborted", {}).get("reason") == "SKIPPED":
            # Targets that this configuration does not build; of those only tests are of interest.
            label = event.get("id", {}).get("targetCompleted", {}).get("label", "")
            if label.endswith("_test"):
                yield label, "SKIPPED", None
        elif event.get("id", {}).get("targetCompleted") and not event.get("completed", {}).get("success"):
            yield event["id"]["targetCompleted"]["label"], "FAILED_TO_BUILD", None


def cases(path):
    """Yields (name, "passed" | "failed" | "skipped", reason) of one test.xml."""
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed"):
            skipped = case.find("skipped")
            yield name, "skipped", (skipped.get("message") or "" if skipped is not None else "disabled").strip().splitlines()
        else:
            yield name, "passed", ""


def main():
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    with open(sys.argv[1]) as events:
        for label, status, path in results(events):
            if status == "SKIPPED":
                counts["skipped"] += 1
                print(f"skipped: {label}: not built by this configuration (its BUILD file says for which it is)")
                continue
            found = list(cases(path)) if path and pathlib.Path(path).is_file() and pathlib.Path(path).stat().st_size else []
            for name, outcome, reason in found:
                counts[outcome] += 1
                if outcome != "passed":
                    why = f": {reason[-1].strip()}" if reason else ""
                    print(f"{outcome}: {label} {name}{why}")
            # A crash, a time-out or a broken build may leave no failed case behind, but it failed all the same.
            if status not in ("PASSED", "FLAKY") and not any(outcome == "failed" for _, outcome, _ in found):
                counts["failed"] += 1
                print(f"failed: {label} {status}")
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
