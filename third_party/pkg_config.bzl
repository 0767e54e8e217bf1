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

cc_library(
    name = "{name}",
    hdrs = [":headers"],
    defines = {defines},
    includes = {includes},
    deps = [":link"],
)
"""

def _pkg_config(ctx, option):
    result = ctx.execute(["pkg-config", option, ctx.attr.package])
    if result.return_code != 0:
        fail("pkg-config does not know {}: run deploy/install-deps\n{}".format(ctx.attr.package, result.stderr))
    return [word for word in result.stdout.strip().split(" ") if word]

def _impl(ctx):
    includes = []
    for index, flag in enumerate(_pkg_config(ctx, "--cflags-only-I")):
        includes.append("include{}".format(index))
        ctx.symlink(flag[2:], includes[-1])
    ctx.file("BUILD", _BUILD.format(
        defines = ctx.attr.defines,
        includes = includes,
        linkopts = _pkg_config(ctx, "--libs"),
        name = ctx.name,
    ))

pkg_config_library = repository_rule(
    implementation = _impl,
    attrs = {
        "defines": attr.string_list(),
        "package": attr.string(mandatory = True),
    },
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
