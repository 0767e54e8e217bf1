#!/usr/bin/env python3
"""Counts test cases from the build events of `bazel test`: prints the failed and skipped ones with the end of each
failed test's log, then "N passed, N failed, N skipped".

Usage: count_results.py EVENTS.json (written by --build_event_json_file). Exit 1 if a case failed or none passed.
"""

import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree

# A test's tag in its BUILD file -> (file, two remedies). The file, below Bazel's external/, holds the reason why the
# machine lacks what the test needs. It is empty if the machine has it. The first remedy is for a machine that lacks it,
# the second for one that has it.
NEEDS = {"cuda": ("cuda/missing", "install it and NCCL, then run tests/run --config=cuda", "run tests/run --config=cuda")}

# A CI run shows this output and keeps no files, so the end of a failed test's log must be in it.
LOG_LINES = 30
LOG_BYTES = 8192


def end_of_log(path):
    """Returns the last lines of a log, indented; [] if it cannot be read."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return []
    return ["    " + line for line in text.rstrip().splitlines()[-LOG_LINES:]]


def why_not_built(label, tags, external):
    """Returns the reason why this configuration skips a test, with a remedy. `external` is Bazel's external/ folder, or None."""
    for tag in tags:
        if tag in NEEDS:
            path, install, run = NEEDS[tag]
            note = external / path if external else None
            missing = note.read_text().strip() if note and note.is_file() else ""
            return f"{missing}; {install} {label}" if missing else f"no part of a build without --config={tag}; {run} {label}"
    return "not built by this configuration (its BUILD file says for which it is)"


def results(events):
    """Yields (target, status, path of test.xml or None, reason) of each finished test action, each target that was not
    built, and each test that an interrupt kept from running. A test's log is test.log beside its test.xml."""
    tests, not_run, external = {}, set(), None
    for line in events:
        event = json.loads(line)
        event_id = event.get("id", {})
        if "workspaceInfo" in event:
            # The path is OUTPUT_BASE/execroot/NAME.
            external = pathlib.Path(event["workspaceInfo"]["localExecRoot"]).parents[1] / "external"
        elif "configured" in event and event["configured"].get("targetKind", "").endswith("_test rule"):
            tests[event_id["targetConfigured"]["label"]] = event["configured"].get("tag", [])
        elif event.get("aborted", {}).get("reason") == "USER_INTERRUPTED":
            label = next(iter(event_id.values())).get("label", "")
            if label in tests and label not in not_run:
                not_run.add(label)
                yield label, "NOT_RUN", None, ""
        elif "testResult" in event_id:
            outputs = {output["name"]: output.get("uri", "") for output in event["testResult"].get("testActionOutput", [])}
            path = urllib.parse.unquote(urllib.parse.urlparse(outputs.get("test.xml", "")).path)
            yield event_id["testResult"]["label"], event["testResult"]["status"], path or None, ""
        elif event.get("aborted", {}).get("reason") == "SKIPPED":
            # This configuration does not build the target. Only tests are listed here.
            label = event_id.get("targetCompleted", {}).get("label", "")
            if label in tests:
                yield label, "SKIPPED", None, why_not_built(label, tests[label], external)
        elif "targetCompleted" in event_id and not event.get("completed", {}).get("success"):
            yield event_id["targetCompleted"]["label"], "FAILED_TO_BUILD", None, ""


def cases(path):
    """Yields (name, "passed" | "failed" | "skipped", reason) for each case of one test.xml. Yields nothing if a killed test left an incomplete
    file."""
    try:
        root = xml.etree.ElementTree.parse(path)
    except (OSError, xml.etree.ElementTree.ParseError):
        return
    for case in root.iter("testcase"):
        name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed", ""
        elif skipped is not None or case.get("result") in ("skipped", "suppressed"):
            lines = (skipped.get("message") or "" if skipped is not None else "disabled").strip().splitlines()
            yield name, "skipped", lines[-1].strip() if lines else ""
        else:
            yield name, "passed", ""


def count(events):
    """Returns the lines to print for cases that did not pass, and {"passed": N, "failed": N, "skipped": N}."""
    lines, counts = [], {"passed": 0, "failed": 0, "skipped": 0}
    for label, status, path, reason in results(events):
        if status == "SKIPPED":
            counts["skipped"] += 1
            lines.append(f"skipped: {label}: {reason}")
            continue
        found = list(cases(path)) if path else []
        for name, outcome, why in found:
            counts[outcome] += 1
            if outcome != "passed":
                lines.append(f"{outcome}: {label} {name}" + (f": {why}" if why else ""))
        if status in ("PASSED", "FLAKY"):
            continue
        # A crash, a timeout or a broken build may leave no failed case, but counts as a failure.
        if not any(outcome == "failed" for _, outcome, _ in found):
            counts["failed"] += 1
            lines.append(f"failed: {label} {status}")
        lines += end_of_log(pathlib.Path(path).with_name("test.log")) if path else []
    return lines, counts


def main():
    with open(sys.argv[1]) as events:
        lines, counts = count(events)
    for line in lines:
        print(line)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
