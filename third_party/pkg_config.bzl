"""A system library outside the compiler's default include path, found through pkg-config."""

# The folders of the headers are include0, include1 and so on.
_BUILD = """
package(default_visibility = ["//visibility:public"])

filegroup(
    name = "headers",
    srcs = glob(["include*/**/*.h"]),
)

cc_library(
    name = "link",
    linkopts = {linkopts},
)
"""

def _pkg_config(ctx, option):
    result = ctx.execute(["pkg-config", option, ctx.attr.package])
    if result.return_code != 0:
        fail("pkg-config does not know {}: run deploy/install-deps\n{}".format(ctx.attr.package, result.stderr))
    return [word for word in result.stdout.strip().split(" ") if word]

def _impl(ctx):
    for index, flag in enumerate(_pkg_config(ctx, "--cflags-only-I")):
        ctx.symlink(flag[2:], "include{}".format(index))
    ctx.file("BUILD", _BUILD.format(linkopts = _pkg_config(ctx, "--libs")))

pkg_config_library = repository_rule(
    implementation = _impl,
    attrs = {
        "package": attr.string(mandatory = True),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
