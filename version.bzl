"""The version of this tree, as the programs print it."""

VERSION = "0.1.0"

VERSION_DEFINE = ["HOOKE_VERSION='\"{}\"'".format(VERSION)]
