"""The CUDA Toolkit, if there is one, and libraries compiled by its nvcc. Used with --config=cuda only.

Without that flag Bazel still analyzes the targets that it skips, and all their dependencies. So the repository's targets must be well-formed
even without a toolkit. If somebody builds them there, they fail with a message.
"""

_FOUND = """
package(default_visibility = ["//visibility:public"])

exports_files(["nvcc"])

cc_library(
    name = "headers",
    hdrs = glob(["include/**"]),
    includes = ["include"],
)

cc_library(
    name = "runtime",
    deps = [":headers"],
    linkopts = ["-L{lib}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"],
)
"""

# Programs load NCCL when they need it (mpi_group/cuda/nccl_calls.h), so that they start without it. They look for it in
# their rpath, too.
_NCCL = """
cc_library(
    name = "nccl",
    hdrs = glob(["nccl/**"]),
    includes = ["nccl"],
    linkopts = ["-Wl,-rpath,{home}/lib64", "-Wl,-rpath,{home}/lib", "-ldl"],
    deps = [":headers"],
)
"""

_NO_NCCL = """
genrule(
    name = "no_nccl",
    outs = ["no_nccl.cc"],
    cmd = "echo 'no include/nccl.h in $$NCCL_HOME, beside the CUDA Toolkit, in /usr/local or /usr: install NCCL, or pass --repo_env=NCCL_HOME=FOLDER' >&2; exit 1",
)

cc_library(name = "nccl", srcs = [":no_nccl"])
"""

_MISSING = """
package(default_visibility = ["//visibility:public"])

[genrule(
    name = name,
    outs = [out],
    srcs = ["missing"],
    cmd = "echo $$(cat $<): install the CUDA Toolkit, or build without --config=cuda >&2; exit 1",
) for name, out in [("no_nvcc", "nvcc"), ("no_cuda_toolkit", "no_cuda_toolkit.cc")]]

[cc_library(
    name = name,
    srcs = [":no_cuda_toolkit"],
) for name in ["headers", "runtime", "nccl"]]
"""

def _find(ctx):
    """Looks for the toolkit.

    Args:
      ctx: the repository rule's context.

    Returns:
      The path of nvcc and "", or None and the reason why there is none.
    """
    home = ctx.os.environ.get("CUDA_HOME")
    if home:
        nvcc = ctx.path(home + "/bin/nvcc")
        return (nvcc, "") if nvcc.exists else (None, "no CUDA Toolkit found: CUDA_HOME is {} and has no bin/nvcc".format(home))
    nvcc = ctx.which("nvcc") or ctx.path("/usr/local/cuda/bin/nvcc")
    return (nvcc, "") if nvcc.exists else (None, "no CUDA Toolkit found: no nvcc on PATH or in /usr/local/cuda/bin")

def _impl(ctx):
    nvcc, why = _find(ctx)

    # tests/count_results.py reads this file for the reason why tests that need a toolkit were skipped.
    ctx.file("missing", why)
    if not nvcc:
        ctx.file("BUILD", _MISSING)
        return

    # nvcc finds its own parts relative to its real path, so links must be resolved.
    nvcc = nvcc.realpath
    home = nvcc.dirname.dirname
    ctx.file("nvcc", "#!/bin/sh\nexec {} \"$@\"\n".format(nvcc), executable = True)
    include = home.get_child("include")
    for target in ["targets/x86_64-linux/include", "targets/sbsa-linux/include"]:
        if not include.exists and ctx.path(str(home) + "/" + target).exists:
            include = ctx.path(str(home) + "/" + target)
    ctx.symlink(include, "include")

    # NCCL is not part of the toolkit, but is often installed beside it.
    nccl = _NO_NCCL
    for place in [ctx.os.environ.get("NCCL_HOME"), str(home), "/usr/local", "/usr"]:
        if place and ctx.path(place + "/include/nccl.h").exists:
            ctx.symlink(place + "/include/nccl.h", "nccl/nccl.h")
            nccl = _NCCL.format(home = place)
            break
    ctx.file("BUILD", _FOUND.format(lib = str(home) + "/lib64") + nccl)

cuda_toolkit = repository_rule(
    implementation = _impl,
    environ = [
        "CUDA_HOME",
        "NCCL_HOME",
        "PATH",
    ],
    local = True,
)

# Set by targets that exist only with --config=cuda. In other configurations //... skips them.
CUDA_ONLY = select({
    "//third_party:use_cuda": [],
    "//conditions:default": ["@platforms//:incompatible"],
})

def cuda_library(name, srcs, hdrs = [], headers_of_deps = [], deps = [], **kwargs):
    """A library of .cu sources, with device code for every major architecture of the toolkit. Only with --config=cuda does //... include it.

    Args:
      name: the library's name.
      srcs: .cu files.
      hdrs: their headers; those that plain C++ includes must not include CUDA's.
      headers_of_deps: headers of deps that the sources include.
      deps: further cc_library targets.
      **kwargs: passed to the cc_library.
    """
    objects = []
    for src in srcs:
        object = src[:-len(".cu")] + ".cu.pic.o"
        objects.append(object)
        native.genrule(
            name = object + "_compile",
            srcs = [src] + hdrs + headers_of_deps,
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
