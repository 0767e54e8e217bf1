// Groups of which a node has an RDMA device: they measure whether MPI or sockets carry messages between nodes.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "mpi_group/group.h"
#include "mpi_group/groups/group_nodes.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/counting_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

namespace hooke {
namespace {

constexpr int kRanks = 4;

// A folder in which the kernel seems to list an active RDMA device.
class FakeDevices {
 public:
  FakeDevices() {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    std::filesystem::create_directories(folder_ + "/mlx5_0/ports/1");
    std::ofstream(folder_ + "/mlx5_0/ports/1/state") << "4: ACTIVE\n";
  }
  FakeDevices(const FakeDevices&) = delete;
  FakeDevices& operator=(const FakeDevices&) = delete;
  ~FakeDevices() { std::filesystem::remove_all(folder_); }

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_ = testing::TempDir() + "/rdma-XXXXXX";
};

// Stands for MPI. Each message takes a while longer, and is counted.
class CarrierTransport final : public CountingTransport {
 public:
  CarrierTransport(std::unique_ptr<Transport> transport, absl::Duration delay)
      : CountingTransport(std::move(transport)), delay_(delay) {}

  absl::StatusOr<Ticket> StartSend(const Outgoing& outgoing) override {
    absl::SleepFor(delay_);
    return CountingTransport::StartSend(outgoing);
  }

 private:
  const absl::Duration delay_;
};

struct Chosen {
  std::string why_no_sockets;
  uint64_t bytes_by_mpi = 0;  // While the ranks measured and then sent a message of 10 bytes.
  uint64_t messages_by_mpi = 0;
};

// Starts a group on two nodes, of which the second alone may have a device. Then each rank sends a message to the rank
// two further on, which is on the other node.
std::vector<Chosen> Start(Tuning::BetweenNodes between, const std::string& devices, absl::Duration mpi_delay) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(kRanks);
  std::vector<Chosen> chosen(kRanks);
  RunRanks(kRanks, [&](int rank) {
    CarrierTransport mpi(std::move(transports[rank]), mpi_delay);
    GroupOptions options;
    options.tuning.between_nodes = between;
    options.node = absl::StrCat("node ", rank / 2);
    options.rdma_devices = rank == 3 ? devices : "/none";
    const absl::Time deadline = SteadyNow() + absl::Seconds(30);
    std::vector<char> memory;
    const auto nodes = GroupNodes::Gather(mpi, options, memory, deadline);
    ASSERT_TRUE(nodes.ok()) << nodes.status();
    chosen[rank].why_no_sockets = (*nodes)->why_no_sockets();
    chosen[rank].bytes_by_mpi = mpi.sent().bytes;
    const uint64_t messages = mpi.sent().messages;
    std::vector<char> out(10), in(10);
    const int peer = (rank + 2) % kRanks;
    const absl::Status sent =
        (*nodes)->transport().Exchange({peer, absl::MakeSpan(out)}, {peer, absl::MakeSpan(in)}, deadline);
    EXPECT_EQ(sent, absl::OkStatus());
    chosen[rank].messages_by_mpi = mpi.sent().messages - messages;
  });
  for (const Chosen& one : chosen) {
    EXPECT_EQ(one.why_no_sockets, chosen[0].why_no_sockets);
    EXPECT_EQ(one.messages_by_mpi, one.why_no_sockets.empty() ? 0u : 1u);
  }
  return chosen;
}

// A device alone decides nothing: sockets carry the messages if MPI turns out to be slower.
TEST(GroupCarrierTest, SocketsIfMpiIsSlow) {
  const FakeDevices devices;
  const std::vector<Chosen> chosen = Start(Tuning::BetweenNodes::kAuto, devices.folder(), absl::Milliseconds(4));
  EXPECT_EQ(chosen[0].why_no_sockets, "");
  EXPECT_GT(chosen[0].bytes_by_mpi, 16u << 10) << "nothing was measured";
}

// Messages between threads of one process are quicker than over sockets. So MPI is chosen, if not in the first group,
// which may have waited for a core, then soon.
TEST(GroupCarrierTest, MpiIfItIsFaster) {
  const FakeDevices devices;
  std::string why;
  for (int i = 0; i < 50 && why.empty(); ++i) {
    why = Start(Tuning::BetweenNodes::kAuto, devices.folder(), absl::ZeroDuration())[0].why_no_sockets;
  }
  EXPECT_EQ(why.substr(0, 30), "MPI was measured to be faster:");
}

// Without a device, or with a tuning that says which carrier it is, nothing is measured.
TEST(GroupCarrierTest, NothingIsMeasuredWithoutNeed) {
  const FakeDevices devices;
  for (const auto& [between, folder] :
       {std::pair<Tuning::BetweenNodes, std::string>{Tuning::BetweenNodes::kAuto, "/none"},
        {Tuning::BetweenNodes::kSockets, devices.folder()}}) {
    const std::vector<Chosen> chosen = Start(between, folder, absl::ZeroDuration());
    EXPECT_EQ(chosen[0].why_no_sockets, "");
    EXPECT_LT(chosen[0].bytes_by_mpi, 16u << 10);
  }
}

}  // namespace
}  // namespace hooke
