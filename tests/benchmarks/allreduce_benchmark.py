#!/usr/bin/env python3
"""allreduce: see collectives.py."""

import collectives

if __name__ == "__main__":
    collectives.main("allreduce")
