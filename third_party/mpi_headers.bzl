"""The headers of the MPI library of this build, at the same paths whichever library it is.

Sources that include none of them are compiled by the same command then, and Bazel does not compile them again for the other library.
"""

def _mpi_headers_impl(ctx):
    outs = []
    for header in ctx.files.srcs:
        # The path of a header in another repository is ../REPOSITORY/PATH.
        out = ctx.actions.declare_file("mpi/" + header.short_path.split("/", 2)[2])
        ctx.actions.symlink(output = out, target_file = header)
        outs.append(out)
    return [DefaultInfo(files = depset(outs))]

mpi_headers = rule(
    implementation = _mpi_headers_impl,
    attrs = {"srcs": attr.label_list(allow_files = True, doc = "The headers, of a pkg_config_library.")},
)
