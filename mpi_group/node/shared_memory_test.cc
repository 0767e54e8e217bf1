#include "mpi_group/node/shared_memory.h"

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "mpi_group/collectives/barrier.h"
#include "mpi_group/rank_threads.h"
#include "mpi_group/transport/forwarding_transport.h"
#include "mpi_group/transport/in_process_transport.h"
#include "mpi_group/transport/steady_clock.h"

#if defined(__SANITIZE_ADDRESS__)
#define HOOKE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HOOKE_SANITIZED 1
#endif
#endif

namespace hooke {
namespace {

// Counts shared memory objects that this process made and did not remove.
int NamesLeft() {
  int count = 0;
  DIR* folder = opendir("/dev/shm");
  if (folder == nullptr) return -1;
  while (const dirent* entry = readdir(folder)) {
    if (absl::StartsWith(entry->d_name, absl::StrCat("hooke-", getpid(), "-"))) ++count;
  }
  closedir(folder);
  return count;
}

// All ranks see what one rank writes. The memory begins as zeros, and no name is left while it is in use.
TEST(SharedMemoryTest, AllRanksSeeOneMemory) {
  constexpr int kRanks = 3;
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(kRanks);
  RunRanks(kRanks, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    Transport& transport = *transports[rank];
    const absl::StatusOr<std::unique_ptr<SharedMemory>> memory = SharedMemory::Create(transport, 5000, deadline);
    ASSERT_EQ(memory.status(), absl::OkStatus());
    EXPECT_EQ(NamesLeft(), 0);
    EXPECT_EQ((*memory)->bytes_per_rank(), 8192);
    char* const base = (*memory)->base();
    for (int i = 0; i < kRanks * 8192; ++i) ASSERT_EQ(base[i], 0);
    ASSERT_EQ(DisseminationBarrier(transport, deadline), absl::OkStatus());
    base[rank * 8192 + 4999] = static_cast<char>('a' + rank);
    ASSERT_EQ(DisseminationBarrier(transport, deadline), absl::OkStatus());
    for (int peer = 0; peer < kRanks; ++peer) EXPECT_EQ(base[peer * 8192 + 4999], static_cast<char>('a' + peer));
  });
}

// Returns the kilobytes that this process has mapped of the mapping that begins at `base`; -1 if there is none.
int64_t MappedKilobytes(const char* base) {
  std::ifstream maps("/proc/self/smaps");
  const std::string begin = absl::StrCat(absl::Hex(reinterpret_cast<uintptr_t>(base)), "-");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    if (absl::StartsWith(line, begin)) inside = true;
    absl::string_view rest = line;
    int64_t kilobytes = 0;
    if (inside && absl::ConsumePrefix(&rest, "Rss:") && absl::ConsumeSuffix(&rest, " kB") &&
        absl::SimpleAtoi(rest, &kilobytes)) {
      return kilobytes;
    }
  }
  return -1;
}

// A rank maps its own memory at once, and that of others when it touches it.
TEST(SharedMemoryTest, MapsWhatIsTouched) {
  constexpr int kRanks = 4;
  constexpr uint64_t kBytes = 1 << 20;
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(kRanks);
  RunRanks(kRanks, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    const absl::StatusOr<std::unique_ptr<SharedMemory>> memory =
        SharedMemory::Create(*transports[rank], kBytes, deadline);
    ASSERT_EQ(memory.status(), absl::OkStatus());
    EXPECT_LE(MappedKilobytes((*memory)->base()), 1024);
    // The kernel may map some pages around the one that is touched.
    (*memory)->base()[(rank + 1) % kRanks * kBytes] = 1;
    EXPECT_LE(MappedKilobytes((*memory)->base()), 1024 + 64);
  });
}

// Changes the first `changed` offers that it receives so that they name other files. Its rank then sees what a rank in
// another PID namespace would see.
class ElsewhereTransport : public ForwardingTransport {
 public:
  ElsewhereTransport(std::unique_ptr<Transport> transport, int changed)
      : ForwardingTransport(std::move(transport)), left_(changed) {}

  absl::StatusOr<Ticket> StartReceive(const Incoming& incoming) override {
    last_ = incoming.bytes;
    return ForwardingTransport::StartReceive(incoming);
  }
  absl::Status Wait(Ticket ticket, absl::Time deadline) override {
    absl::Status status = ForwardingTransport::Wait(ticket, deadline);
    const absl::string_view bytes(last_.data(), last_.size());
    const bool by_name = absl::StartsWith(bytes, "/dev/shm/hooke-");
    if (!status.ok() || !(by_name || absl::StartsWith(bytes, "/proc/"))) return status;
    names_offered += by_name ? 1 : 0;
    if (left_-- > 0) last_.back() = static_cast<char>(last_.back() ^ 1);
    last_ = {};
    return status;
  }

  int names_offered = 0;

 private:
  absl::Span<char> last_;
  int left_;
};

// A rank that finds another file under /proc/PID/fd is offered a named file, whose name is gone soon after.
TEST(SharedMemoryTest, ByNameWhereTheNumberIsAnothers) {
  constexpr ptrdiff_t kPage = 4096;
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  auto elsewhere = std::make_unique<ElsewhereTransport>(std::move(transports[1]), 1);
  const ElsewhereTransport& second = *elsewhere;
  transports[1] = std::move(elsewhere);
  RunRanks(2, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    const absl::StatusOr<std::unique_ptr<SharedMemory>> memory =
        SharedMemory::Create(*transports[rank], kPage, deadline);
    ASSERT_EQ(memory.status(), absl::OkStatus());
    EXPECT_EQ(NamesLeft(), 0);
    (*memory)->base()[rank * kPage] = static_cast<char>('a' + rank);
    ASSERT_EQ(DisseminationBarrier(*transports[rank], deadline), absl::OkStatus());
    EXPECT_EQ((*memory)->base()[(1 - rank) * kPage], static_cast<char>('b' - rank));
  });
  EXPECT_EQ(second.names_offered, 1);
}

// If the name leads to another file as well, all ranks get an error, and the name is gone.
TEST(SharedMemoryTest, NoNameIsLeftWhereNothingCanBeOpened) {
  std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  transports[1] = std::make_unique<ElsewhereTransport>(std::move(transports[1]), 2);
  RunRanks(2, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    const absl::Status status = SharedMemory::Create(*transports[rank], 1, deadline).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(DisseminationBarrier(*transports[rank], deadline), absl::OkStatus());
  });
  EXPECT_EQ(NamesLeft(), 0);
}

// All ranks refuse more memory than the node has, and the transport remains usable.
TEST(SharedMemoryTest, TooMuchIsRefusedOnAllRanks) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    const absl::Status status = SharedMemory::Create(*transports[rank], uint64_t{1} << 50, deadline).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("enlarge /dev/shm"));
    EXPECT_EQ(DisseminationBarrier(*transports[rank], deadline), absl::OkStatus());
  });
  EXPECT_EQ(NamesLeft(), 0);
}

// If the system gives no shared memory, all ranks learn why, and the transport remains usable.
TEST(SharedMemoryTest, SaysWhyItCannotBeOpened) {
#if HOOKE_SANITIZED
  GTEST_SKIP() << "the sanitizer opens files itself, and takes it for an error of the program when it cannot";
#endif
  rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto restore = absl::MakeCleanup([limit] { setrlimit(RLIMIT_NOFILE, &limit); });
  const int next_file = dup(STDERR_FILENO);
  ASSERT_GE(next_file, 0);
  close(next_file);
  const rlimit none_left = {static_cast<rlim_t>(next_file), limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none_left), 0);
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  RunRanks(2, [&](int rank) {
    const absl::Time deadline = SteadyNow() + absl::Seconds(20);
    const absl::Status status = SharedMemory::Create(*transports[rank], 5000, deadline).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Too many open files"));
    EXPECT_EQ(DisseminationBarrier(*transports[rank], deadline), absl::OkStatus());
  });
}

// If a rank does not take part, the others return at their deadline.
TEST(SharedMemoryTest, MissingRank) {
  const std::vector<std::unique_ptr<Transport>> transports = MakeInProcessTransports(2);
  const absl::Status status = SharedMemory::Create(*transports[0], 1, SteadyNow() + absl::Milliseconds(20)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(NamesLeft(), 0);
}

}  // namespace
}  // namespace hooke
