"""The CUDA Toolkit where there is one, and libraries compiled by its nvcc. Used with --config=cuda only."""

_FOUND = """
package(default_visibility = ["//visibility:public"])

exports_files(["nvcc"])

cc_library(
    name = "runtime",
    hdrs = glob(["include/**"]),
    includes = ["include"],
    linkopts = ["-L{lib}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
)
"""

_MISSING = """
package(default_visibility = ["//visibility:public"])

genrule(
    name = "no_cuda_toolkit",
    outs = ["nvcc"],
    cmd = "echo 'no nvcc on PATH, in $$CUDA_HOME/bin or /usr/local/cuda/bin: install the CUDA Toolkit, or build without --config=cuda' >&2; exit 1",
)

cc_library(name = "runtime", srcs = [":no_cuda_toolkit"])
"""

def _impl(ctx):
    nvcc = ctx.which("nvcc")
    for home in [ctx.os.environ.get("CUDA_HOME"), "/usr/local/cuda"]:
        if not nvcc and home and ctx.path(home + "/bin/nvcc").exists:
            nvcc = ctx.path(home + "/bin/nvcc")
    if not nvcc:
        ctx.file("BUILD", _MISSING)
        return

    # nvcc finds its own parts relative to where it really is.
    nvcc = ctx.path(str(nvcc)).realpath
    home = nvcc.dirname.dirname
    ctx.file("nvcc", "#!/bin/sh\nexec {} \"$@\"\n".format(nvcc), executable = True)
    include = home.get_child("include")
    for target in ["targets/x86_64-linux/include", "targets/sbsa-linux/include"]:
        if not include.exists and ctx.path(str(home) + "/" + target).exists:
            include = ctx.path(str(home) + "/" + target)
    ctx.symlink(include, "include")
    ctx.file("BUILD", _FOUND.format(lib = str(home) + "/lib64"))

cuda_toolkit = repository_rule(
    implementation = _impl,
    environ = [
        "CUDA_HOME",
        "PATH",
    ],
    local = True,
)

# For targets that exist only with --config=cuda: //... passes over them otherwise.
CUDA_ONLY = select({
    "//third_party:use_cuda": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def cuda_library(name, srcs, hdrs = [], deps = [], **kwargs):
    """A library of .cu sources, device code for every major architecture of the toolkit. Part of //... only with --config=cuda.

    Args:
      name: the library's name.
      srcs: .cu files.
      hdrs: their headers, free of CUDA's own where plain C++ includes them.
      deps: further cc_library targets; their headers are not seen by nvcc.
      **kwargs: passed to the cc_library.
    """
    objects = []
    for src in srcs:
        object = src[:-len(".cu")] + ".cu.pic.o"
        objects.append(object)
        native.genrule(
            name = object + "_compile",
            srcs = [src] + hdrs,
            outs = [object],
            cmd = "$(location @cuda//:nvcc) -std=c++17 -O3 -arch=all-major -Xcompiler=-fPIC,-Wall -I. -c $(location {}) -o $@".format(src),
            message = "Compiling with nvcc",
            target_compatible_with = CUDA_ONLY,
            tools = ["@cuda//:nvcc"],
        )
    native.cc_library(
        name = name,
        srcs = objects,
        hdrs = hdrs,
        target_compatible_with = CUDA_ONLY,
        deps = deps + ["@cuda//:runtime"],
        **kwargs
    )
