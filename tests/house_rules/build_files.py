"""Finds the files that the targets of the tree's BUILD files name.

A BUILD file is a kind of Python, so this runs it as Python, with functions that only record their arguments. So any spelling of a name is found:
a literal, a glob, a comprehension, a label of another package.
"""

import builtins
import os
import pathlib

# The attributes by which a target includes a file. A file that is only in exports_files belongs to no target.
FILE_ATTRIBUTES = {"srcs", "hdrs", "textual_hdrs", "src", "headers", "headers_of_deps", "data"}


def strings_in(value):
    """Yields the strings in an attribute's value: those of a list, or of the branches of a select()."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for branch in value.values():
            yield from strings_in(branch)
    elif hasattr(value, "__iter__"):
        for each in value:
            yield from strings_in(each)


class Attribute(list):
    """A list to which a select()'s branches can be added with +, on either side."""

    def __add__(self, other):
        return Attribute(list(self) + list(strings_in(other)))

    def __radd__(self, other):
        return Attribute(list(strings_in(other)) + list(self))


def file_of(label, package):
    """Returns the file that a label may mean, relative to the tree's root; None if it is in another repository, or names only a package (`//a/b`)."""
    if label.startswith("@"):
        return None
    if label.startswith("//"):
        package, colon, name = label[2:].partition(":")
        return pathlib.PurePosixPath(package, name).as_posix() if colon else None
    return pathlib.PurePosixPath(package, label.lstrip(":")).as_posix()


class Loaded(Attribute):
    """Stands for a name that the BUILD file does not define. It can be used as an empty list, or as a function that records the files it is given."""

    def __init__(self, package, files):
        super().__init__()
        self.package, self.files = package, files

    def __call__(self, *_, **attributes):
        for attribute in FILE_ATTRIBUTES & set(attributes):
            self.files.update(file_of(label, self.package) for label in strings_in(attributes[attribute]))


class Words(dict):
    """The names of a BUILD file. A name that the file does not define is a Loaded."""

    def __init__(self, folder, package, files):
        super().__init__(__builtins__={name: getattr(builtins, name) for name in ("dict", "enumerate", "len", "list", "range", "str", "zip")})
        self.update(select=lambda branches, **_: Attribute(strings_in(branches)), glob=self.glob)
        self.folder, self.package, self.files = folder, package, files

    def glob(self, include, exclude=(), **_):
        matches = lambda patterns: {path.relative_to(self.folder).as_posix() for pattern in patterns for path in self.folder.glob(pattern)}
        return Attribute(sorted(matches(include) - matches(exclude)))

    def __missing__(self, word):
        if word in self["__builtins__"]:
            raise KeyError(word)
        return Loaded(self.package, self.files)


def build_files_in(root):
    """Yields the BUILD files in the tree's own folders. Bazel's folders are left out, because their files come and go while this runs."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "bazel-")))
        if "BUILD" in files:
            yield pathlib.Path(folder, "BUILD")


def files_of_targets(root):
    """Returns the files, relative to the root, that some target includes, and a finding for each BUILD file that cannot be read."""
    files, broken = set(), []
    for build in build_files_in(root):
        parts = build.relative_to(root).parts
        package = pathlib.PurePosixPath(*parts[:-1]).as_posix()
        try:
            exec(compile(build.read_text(), str(build), "exec"), Words(build.parent, package, files))
        except Exception as error:  # Any fault in the file becomes a finding, and other files are still read.
            broken.append(f"{pathlib.PurePosixPath(*parts).as_posix()}:1: cannot be read: {error}")
    return files, broken
