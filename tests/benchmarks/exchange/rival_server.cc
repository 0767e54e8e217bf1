// The rivals' servers, which send back what they receive. `sockets` has a thread for each connection and copies each
// piece once, as a server must that keeps values. `grpc-unary` is the generated service, which copies the request's
// field to the answer's. The program writes HOST:PORT into --ready-file and serves until it is killed.

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flags/command_line.h"
#include "tests/benchmarks/exchange/push_pull.grpc.pb.h"
#include "tests/benchmarks/exchange/tcp.h"

namespace hooke {
namespace {

constexpr size_t kPieceBytes = 256 << 10;

void WriteReadyFile(const std::string& path, int port) {
  std::ofstream(path + ".new") << "127.0.0.1:" << port << "\n";
  std::rename((path + ".new").c_str(), path.c_str());
}

void Echo(const Tcp& tcp) {
  std::vector<char> received(kPieceBytes);
  std::vector<char> kept(kPieceBytes);
  while (true) {
    const absl::StatusOr<size_t> count = tcp.ReceiveSome(received.data(), received.size());
    if (!count.ok() || *count == 0) return;
    std::memcpy(kept.data(), received.data(), *count);
    if (!tcp.Send(kept.data(), *count).ok()) return;
  }
}

int ServeSockets(const std::string& ready_file) {
  uint16_t port = 0;
  const absl::StatusOr<Tcp> listener = Tcp::Listen(&port);
  if (!listener.ok()) return 1;
  WriteReadyFile(ready_file, port);
  while (true) {
    absl::StatusOr<Tcp> accepted = listener->Accept();
    if (!accepted.ok()) return 1;
    std::thread([tcp = *std::move(accepted)] { Echo(tcp); }).detach();
  }
}

class PushPull final : public benchmark::PushPull::Service {
  grpc::Status Call(grpc::ServerContext*, const benchmark::Values* request, benchmark::Values* response) override {
    response->set_values(request->values());
    return grpc::Status::OK;
  }
};

int ServeUnary(const std::string& ready_file) {
  PushPull service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  WriteReadyFile(ready_file, port);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("rival_server", "A server that sends back what comes");
  std::string way;
  std::string ready_file;
  command.Add("--way", way, "sockets or grpc-unary").Required().OneOf({"sockets", "grpc-unary"});
  command.Add("--ready-file", ready_file, "HOST:PORT is written here").Required();
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  return way == "sockets" ? hooke::ServeSockets(ready_file) : hooke::ServeUnary(ready_file);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
