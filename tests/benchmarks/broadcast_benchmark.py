#!/usr/bin/env python3
"""broadcast: see collectives.py."""

import collectives

if __name__ == "__main__":
    collectives.main("broadcast")
