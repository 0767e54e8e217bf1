"""Which files the targets of the tree's BUILD files name.

A BUILD file's language is a part of Python, so it is run as such, with functions that only note what they are given: it does not matter
how a name is quoted or put together (a glob, a list's comprehension, a label of another package).
"""

import builtins
import os
import pathlib

# The attributes by which a target takes a file in; a file in exports_files alone is in no target.
FILE_ATTRIBUTES = {"srcs", "hdrs", "textual_hdrs", "src", "headers", "headers_of_deps", "data"}


def strings_in(value):
    """The strings of an attribute's value: of a list, or of the branches of a select()."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for branch in value.values():
            yield from strings_in(branch)
    elif hasattr(value, "__iter__"):
        for each in value:
            yield from strings_in(each)


class Attribute(list):
    """A list that is also added to a select()'s branches, whichever stands first."""

    def __add__(self, other):
        return Attribute(list(self) + list(strings_in(other)))

    def __radd__(self, other):
        return Attribute(list(strings_in(other)) + list(self))


def file_of(label, package):
    """The file a label may mean, from the tree's root; None for one of another repository."""
    if label.startswith("@"):
        return None
    if label.startswith("//"):
        package, colon, name = label[2:].partition(":")
        return pathlib.PurePosixPath(package, name).as_posix() if colon else None
    return pathlib.PurePosixPath(package, label.lstrip(":")).as_posix()


class Loaded(Attribute):
    """A name of another file: an empty list, or a function that notes the files it is given."""

    def __init__(self, package, files):
        super().__init__()
        self.package, self.files = package, files

    def __call__(self, *_, **attributes):
        for attribute in FILE_ATTRIBUTES & set(attributes):
            self.files.update(file_of(label, self.package) for label in strings_in(attributes[attribute]))


class Words(dict):
    """The names a BUILD file knows. Every one that it does not define itself may be a function."""

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
    """Those of the tree's own folders. Bazel's, which come and go while this looks, are not entered."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "bazel-")))
        if "BUILD" in files:
            yield pathlib.Path(folder, "BUILD")


def files_of_targets(root):
    """The files, from the root, that some target takes in; and findings on BUILD files that could not be read."""
    files, broken = set(), []
    for build in build_files_in(root):
        parts = build.relative_to(root).parts
        package = pathlib.PurePosixPath(*parts[:-1]).as_posix()
        try:
            exec(compile(build.read_text(), str(build), "exec"), Words(build.parent, package, files))
        except Exception as error:  # Whatever is wrong with it: it is named, and the check goes on.
            broken.append(f"{pathlib.PurePosixPath(*parts).as_posix()}:1: cannot be read: {error}")
    return files, broken
