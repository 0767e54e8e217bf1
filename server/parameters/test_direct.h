#ifndef HOOKE_SERVER_PARAMETERS_TEST_DIRECT_H_
#define HOOKE_SERVER_PARAMETERS_TEST_DIRECT_H_

// A fixture for tests of DirectExchanges: a store, its DirectExchanges, and clients on loopback.

#include <gtest/gtest.h>
#include <malloc.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "server/parameters/direct_exchanges.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/test_center.h"
#include "wire/frame_socket.h"

namespace hooke {

constexpr absl::Duration kDirectPatience = absl::Seconds(30);

// A center of zeros in blocks of four, with ten values by default, and a DirectExchanges that serves it.
class DirectExchangesTest : public ::testing::Test {
 protected:
  DirectExchangesTest() { StartTwoGroups(); }

  void StartTwoGroups(const DirectExchanges::Options& options = {}) {
    Start(MakeAttachRequest({}), options);
    EXPECT_TRUE(store_->Attach(absl::UnixEpoch(), MakeAttachRequest({}, 1)).ok());
  }

  // Host, store and logger of `options` are set here.
  void Start(const v1::AttachRequest& request, DirectExchanges::Options options = {}) {
    storage_ = std::make_shared<InMemoryStorage>();
    OpenStore();
    MakeCenter(request);
    Listen(std::move(options));
  }
  // Opens the store of storage_ without an earlier one, as after a crash.
  void OpenStore() {
    ParameterStoreOptions options;
    options.storage = storage_;
    options.logger = logger_;
    options.block_values = block_values_;
    exchanges_.reset();
    store_ = ParameterStore::Open(options).value();
  }
  // Makes the center of a job, which group 0 attaches and initializes.
  void MakeCenter(const v1::AttachRequest& request) {
    EXPECT_TRUE(store_->Attach(absl::UnixEpoch(), request).ok());
    const Speaker speaker = {0, 0, 1};
    const std::shared_ptr<Shard> shard = store_->Find(request.sender()).value();
    for (uint64_t block = 0; block < shard->blocks(); ++block) {
      const Range range = shard->BlockRange(block);
      const std::vector<float> zeros(range.size());
      EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), speaker, range.begin, zeros).ok());
    }
    EXPECT_TRUE(store_->FinishInitialize(request.sender().job_id(), speaker).ok());
  }
  void Listen(DirectExchanges::Options options = {}) {
    options.store = store_.get();
    options.logger = logger_;
    options.host = "127.0.0.1";
    exchanges_ = DirectExchanges::Listen(std::move(options)).value();
  }

  int ConnectRaw() const {
    return ConnectTcp("127.0.0.1", exchanges_->port(), kDirectPatience, [] { return false; }).value();
  }
  std::unique_ptr<FrameSocket> Connect() const { return std::make_unique<FrameSocket>(ConnectRaw()); }

  static absl::Status SendValues(FrameSocket& socket, const ValuesHeader& header, const std::vector<float>& x) {
    const auto* bytes = reinterpret_cast<const char*>(x.data());
    return socket.SendPayload(header, {bytes, x.size() * sizeof(float)});
  }
  // Exchanges `x` and returns the answer.
  static absl::StatusOr<std::vector<float>> Exchange(FrameSocket& socket, const ValuesHeader& header,
                                                     const std::vector<float>& x) {
    if (absl::Status status = SendValues(socket, header, x); !status.ok()) return status;
    return ReceiveAnswer(socket, header);
  }
  static absl::StatusOr<std::vector<float>> ReceiveAnswer(FrameSocket& socket, const ValuesHeader& header) {
    absl::StatusOr<FrameSocket::Header> answered = socket.ReceiveHeader();
    if (!answered.ok()) return answered.status();
    if (!answered->refusal.ok()) return answered->refusal;
    EXPECT_EQ(answered->values.first, header.first);
    EXPECT_EQ(answered->values.sequence, header.sequence);
    std::vector<float> answer(answered->values.values);
    auto* room = reinterpret_cast<char*>(answer.data());
    if (absl::Status status = socket.ReceivePayload({room, answer.size() * sizeof(float)}); !status.ok()) return status;
    return answer;
  }

  uint64_t block_values_ = 4;
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> logger_ =
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
  std::shared_ptr<InMemoryStorage> storage_;
  std::unique_ptr<ParameterStore> store_;
  std::unique_ptr<DirectExchanges> exchanges_;
};

// The bytes that this process has allocated and not freed; 0 in a build whose allocator does not tell.
inline size_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

inline size_t ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_DIRECT_H_
