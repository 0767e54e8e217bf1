"""Headers of the system that are compiled once for many sources."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# The headers of Protocol Buffers and gRPC that generated code begins with.
PROTO_HEADERS = [
    "google/protobuf/message.h",
    "google/protobuf/map_field_inl.h",
    "google/protobuf/repeated_field.h",
    "google/protobuf/generated_enum_reflection.h",
    "google/protobuf/any.pb.h",
    "grpcpp/grpcpp.h",
]

# Without the first, clang instantiates the headers' pending templates in each source again, and nothing is gained. The
# second comes with layering_check, which only the configuration `clang` has.
CLANG_HEADER_OPTIONS = select({
    "//third_party:clang": [
        "-fpch-instantiate-templates",
        "-fmodules-strict-decluse",
    ],
    "//third_party:tsan": ["-fpch-instantiate-templates"],
    "//conditions:default": [],
})

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        # The headers have no module map. Sources that use them still have theirs.
        unsupported_features = ctx.disabled_features + ["layering_check", "module_maps"],
    )
    out = ctx.actions.declare_file("{}/ciso646.gch".format(ctx.label.name))
    contexts = [dep[CcInfo].compilation_context for dep in ctx.attr.deps]
    includes = []
    for header in ctx.attr.headers:
        includes += ["-include", header]
    options = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts
    # gcc keeps the list of these headers only if it is told to write it (see -fpch-deps in .bazelrc).
    lists_headers = ["-MD", "-MF", "/dev/null"]
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = ctx.attr.last,
        output_file = out.path,
        user_compile_flags = options + lists_headers + includes + ["-x", "c++-header"],
        quote_include_directories = depset([".", ctx.bin_dir.path]),
        use_pic = True,
    )
    action = "c++-compile"
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(feature_configuration = features, action_name = action),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        inputs = depset(transitive = [toolchain.all_files] + [context.headers for context in contexts]),
        outputs = [out],
        mnemonic = "CppPrecompile",
        progress_message = "Compiling the headers of {}".format(ctx.label),
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        # The compiler says that a source has read all of them.
        headers = depset([out], transitive = [context.headers for context in contexts]),
        quote_includes = depset([out.dirname]),
    ))]

precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    doc = """A library that gives the sources of its users the headers, compiled, as <name>/ciso646.gch.

With the option `-include ciso646` gcc takes this file instead of the standard library's header of that name, which is empty. If the file does not fit
the options of a source, or the source's library does not depend on this one, gcc includes the empty header: the source is only slower to compile.
clang always includes the empty header; it is told the path of the file with -include-pch.""",
    attrs = {
        "copts": attr.string_list(doc = "Options of the compiler. Those of a source that uses the headers must be the same."),
        "deps": attr.label_list(doc = "Libraries of this tree that have some of the headers.", providers = [CcInfo]),
        "headers": attr.string_list(doc = "As in #include <...>."),
        # Were this a file of the tree, Bazel would find it in a sandbox that is gone, as an undeclared header of each user.
        "last": attr.string(doc = "The path of one more header, which comes last. The compiler wants one.", mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
