#!/usr/bin/env python3
"""Runs the benchmark `allreduce`; see collectives.py."""

import collectives
import report

if __name__ == "__main__":
    report.run(collectives.main, "allreduce")
