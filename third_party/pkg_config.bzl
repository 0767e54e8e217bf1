"""A system library outside the compiler's default include path, found through pkg-config."""

_BUILD = """
cc_library(
    name = "{name}",
    hdrs = glob(["include*/**/*.h"]),
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
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
        ctx.symlink(flag[2:], "include{}".format(index))
        includes.append("include{}".format(index))
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
