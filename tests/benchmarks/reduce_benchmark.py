#!/usr/bin/env python3
"""reduce: see collectives.py."""

import collectives

if __name__ == "__main__":
    collectives.main("reduce")
