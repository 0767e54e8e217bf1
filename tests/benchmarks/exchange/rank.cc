// A rank of `tests/benchmarks/run exchange`. It waits for commands (../collectives/serve.h) and exchanges with servers.

#include <cstdio>
#include <exception>
#include <string>

#include "CLI/CLI.hpp"
#include "tests/benchmarks/collectives/serve.h"
#include "tests/benchmarks/exchange/ways.h"

int main(int argc, char** argv) try {
  CLI::App app("One rank that exchanges values with servers, in one of several ways");
  hooke::ServeOptions serve;
  hooke::WayOptions options;
  std::string way;
  hooke::AddServeFlags(app, serve);
  app.add_option("--way", way, "How")
      ->required()
      ->check(CLI::IsMember({"hooke", "hooke-unix", "hooke-grpc", "sockets", "grpc-unary"}));
  app.add_option("--rank", options.rank, "This rank")->required();
  app.add_option("--ranks", options.ranks, "Ranks in all")->required();
  app.add_option("--server", options.servers, "HOST:PORT of a server; several, in order")->required();
  CLI11_PARSE(app, argc, argv);
  serve.rank = static_cast<int>(options.rank);
  serve.size = static_cast<int>(options.ranks);
  const hooke::Prepare prepare = way == "sockets"      ? hooke::SocketsWay(options)
                                 : way == "grpc-unary" ? hooke::UnaryWay(options)
                                                       : hooke::HookeWay(options, way);
  const absl::Status status = hooke::Serve(serve, prepare);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
