"""Tests that are Python programs, which the machine's python3 runs."""

def python_test(name, srcs = None, tags = [], **attributes):
    """A test that is the program `<name>.py`, unless srcs names another.

    It reads modules in the tree, which are no declared inputs, so its result is never cached. When Bazel is interrupted
    the program gets SIGTERM before SIGKILL. One that is run by skips.main (deploy/skips.py) then takes away what it has made.

    Args:
      name: the target's name.
      srcs: the program, if it has another name.
      tags: tags beside those that every such test has.
      **attributes: those of sh_test.
    """
    native.sh_test(
        name = name,
        srcs = srcs or [name + ".py"],
        tags = tags + ["external", "no-cache", "supports-graceful-termination"],
        **attributes
    )
