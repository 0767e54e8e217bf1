// The C++ client as a program for foreign_client_test.py. It creates a center and exchanges with it. Then it writes the
// group's values and the center to files of float32 values.

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "algorithms/compression.h"
#include "algorithms/elastic.h"
#include "clocks/steady_time.h"
#include "flags/command_line.h"
#include "proto/job.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/grpc_server_calls.h"

namespace hooke {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

struct Options {
  std::string server;
  std::string job;
  std::string job_key;
  double alpha = 0;
  uint32_t compression = 1;
  std::vector<uint64_t> sequences;
  std::string initial;
  std::string own;
  std::string x;
  std::string center;
};

std::vector<float> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(file), {});
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}

void WriteFile(const std::string& path, const std::vector<float>& values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
}

absl::Status Run(const Options& options) {
  std::vector<float> initial = ReadFile(options.initial);
  std::vector<float> x = ReadFile(options.own);
  const std::unique_ptr<ServerCalls> server = DialServer(options.server);
  CenterOptions center;
  center.sender.set_job_id(options.job);
  center.sender.set_incarnation(1);
  center.sender.set_job_key(options.job_key);
  center.job.set_rule(v1::AveragingSpec::ELASTIC);
  center.job.set_alpha(options.alpha);
  if (options.compression != 1) center.job.set_compression(options.compression);
  center.job.set_groups(1);
  center.job.set_ranks(1);
  center.layout.parameters.push_back({"w", {x.size()}});
  center.partition = Partition(x.size());
  center.servers = {server.get()};
  const CenterClient client(center);
  if (absl::Status status = client.Attach(initial, SteadyTime() + kTimeout).status(); !status.ok()) return status;
  ExchangeOptions exchange;
  exchange.sender = center.sender;
  exchange.encoding.compression = static_cast<Compression>(options.compression);
  exchange.partition = center.partition;
  exchange.servers = center.servers;
  ExchangeClient exchanges(std::move(exchange));
  for (const uint64_t sequence : options.sequences) {
    const auto apply = [&x](const BlockAnswer& answer) {
      ApplyElasticAnswer(answer.values, absl::MakeSpan(x).subspan(answer.first, answer.values.size()));
    };
    exchanges.Start({sequence, {kTimeout, kTimeout}}, x, apply);
    for (const ServerOutcome& outcome : exchanges.Wait()) {
      if (!outcome.status.ok()) return outcome.status;
    }
  }
  if (absl::Status status = client.Pull(absl::MakeSpan(initial), SteadyTime() + kTimeout); !status.ok()) return status;
  WriteFile(options.x, x);
  WriteFile(options.center, initial);
  return absl::OkStatus();
}

}  // namespace
}  // namespace hooke

int main(int argc, char** argv) try {
  hooke::Command command("cpp_client", "Elastic exchanges of one group of one rank with one server");
  hooke::Options options;
  command.Add("--server", options.server, "HOST:PORT").Required();
  command.Add("--job", options.job, "The job's id").Required();
  command.Add("--job-key", options.job_key, "The job's key");
  command.Add("--alpha", options.alpha, "Of the elastic rule").Required();
  command.Add("--compression", options.compression, "Type of the values on the wire, docs/wire.md's number");
  command.Add("--sequence", options.sequences, "Of an exchange; several, growing").Required();
  command.Add("--initial", options.initial, "File of the center's initial values").Required();
  command.Add("--own", options.own, "File of the group's values").Required();
  command.Add("--x", options.x, "File for the group's values afterwards").Required();
  command.Add("--center", options.center, "File for the center's values afterwards").Required();
  if (const hooke::Parsed parsed = command.Parse(argc, argv); !parsed.ok()) return parsed.Print();
  const absl::Status status = hooke::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
