"""C++ from .proto files with the system's protoc and gRPC plugin."""

def cc_grpc_library(name, srcs, imports = [], services = True, deps = [], **kwargs):
    """Messages and gRPC services of `srcs` as one cc_library; included as "<package>/<file>.pb.h".

    Args:
      name: the library's name.
      srcs: .proto files of this package; they may import each other.
      imports: further .proto files of this package that they import; `deps` has their C++.
      services: whether the files may have gRPC services; without them there is no "<package>/<file>.grpc.pb.h".
      deps: further cc_library targets.
      **kwargs: passed to the cc_library.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    kinds = [".pb", ".grpc.pb"] if services else [".pb"]
    headers = [stem + kind + ".h" for stem in stems for kind in kinds]
    sources = [stem + kind + ".cc" for stem in stems for kind in kinds]
    native.genrule(
        name = name + "_generate",
        srcs = srcs + imports,
        outs = headers + sources,
        cmd = " ".join([
            "protoc --proto_path=. --cpp_out=$(GENDIR)",
            "--grpc_out=$(GENDIR) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin)" if services else "",
        ] + ["$(location {})".format(src) for src in srcs]),
        message = "Generating C++ from {}".format(", ".join(srcs)),
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],  # No warnings: the code is generated, not ours.
        deps = deps + ["//third_party:protobuf"] + (["//third_party:grpc"] if services else []),
        **kwargs
    )
