"""C++ from .proto files with the system's protoc and gRPC plugin."""

def cc_grpc_library(name, srcs, deps = [], **kwargs):
    """Messages and gRPC services of `srcs` as one cc_library; included as "<package>/<file>.pb.h".

    Args:
      name: the library's name.
      srcs: .proto files of this package; they may import each other.
      deps: further cc_library targets.
      **kwargs: passed to the cc_library.
    """
    stems = [src[:-len(".proto")] for src in srcs]
    headers = [stem + suffix for stem in stems for suffix in [".pb.h", ".grpc.pb.h"]]
    sources = [stem + suffix for stem in stems for suffix in [".pb.cc", ".grpc.pb.cc"]]
    native.genrule(
        name = name + "_generate",
        srcs = srcs,
        outs = headers + sources,
        cmd = " ".join([
            "protoc --proto_path=. --cpp_out=$(GENDIR) --grpc_out=$(GENDIR)",
            "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) $(SRCS)",
        ]),
        message = "Generating C++ from {}".format(", ".join(srcs)),
    )
    native.cc_library(
        name = name,
        srcs = sources,
        hdrs = headers,
        copts = ["-w"],  # No warnings: the code is generated, not ours.
        deps = deps + ["//third_party:grpc", "//third_party:protobuf"],
        **kwargs
    )
