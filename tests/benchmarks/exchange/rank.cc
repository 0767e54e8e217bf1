// A rank of `tests/benchmarks/run exchange`. It waits for commands (../collectives/serve.h) and exchanges with servers.

#include <cstdio>
#include <exception>
#include <string>

#include "flags/command_line.h"
#include "tests/benchmarks/collectives/serve.h"
#include "tests/benchmarks/exchange/ways.h"

int main(int argc, char** argv) try {
  hooke::Command command("rank", "One rank that exchanges values with servers, in one of several ways");
  hooke::ServeOptions serve;
  hooke::WayOptions options;
  std::string way;
  hooke::AddServeFlags(command, serve);
  command.Add("--way", way, "How").Required().OneOf({"hooke", "hooke-unix", "hooke-grpc", "sockets", "grpc-unary"});
  command.Add("--rank", options.rank, "This rank").Required();
  command.Add("--ranks", options.ranks, "Ranks in all").Required();
  command.Add("--server", options.servers, "HOST:PORT of a server; several, in order").Required();
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
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
