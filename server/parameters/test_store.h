#ifndef HOOKE_SERVER_PARAMETERS_TEST_STORE_H_
#define HOOKE_SERVER_PARAMETERS_TEST_STORE_H_

// The fixture of a store's tests: a store with storage in memory. Like a disk, the storage outlives the store.

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/in_memory_storage.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/test_center.h"

namespace hooke {

class TestStore : public ::testing::Test {
 protected:
  static constexpr absl::Time kNow = absl::UnixEpoch();

  TestStore() { Restart(); }

  // Acts like a crash: memory is lost, storage stays.
  void Restart() { store_ = ParameterStore::Open(Options()).value(); }

  ParameterStoreOptions Options() {
    ParameterStoreOptions options;
    options.storage = storage_;
    options.logger = std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_));
    options.max_center_bytes = 10000;
    options.block_values = 4;
    return options;
  }

  void MakeCenter(const TestCenter& center) {
    ASSERT_EQ(store_->Attach(kNow, MakeAttachRequest(center)).value().state(), v1::AttachResponse::INITIALIZE);
    WriteValues(center);
    ASSERT_TRUE(store_->FinishInitialize(center.job_id, {}).ok());
  }

  void WriteValues(const TestCenter& center) {
    const auto shard = store_->Find(MakeSender(center)).value();
    for (uint64_t block = 0; block < shard->blocks(); ++block) {
      const Range range = shard->BlockRange(block);
      ASSERT_TRUE(shard->WriteInitial(kNow, {}, range.begin, Ramp(range.begin, range.size())).ok());
    }
  }

  // Makes an exchange that moves the first block of the center by `by`.
  void Exchange(const std::string& job_id, uint64_t sequence, float by) {
    const auto shard = store_->Find(SenderOf(job_id)).value();
    std::vector<float> x = shard->CopyBlock(0).values;
    for (float& value : x) value += 4 * by;
    std::vector<float> answer(x.size());
    ASSERT_TRUE(shard->ApplyBlock({{}, sequence, 0}, x, absl::MakeSpan(answer)).ok());
  }

  absl::StatusOr<std::vector<float>> Read(const std::string& job_id) {
    std::vector<float> all;
    const auto header = [](const ParameterStore::CenterHeader&) { return absl::OkStatus(); };
    const auto block = [&all](uint64_t first, absl::Span<const float> values) {
      EXPECT_EQ(first, all.size());
      all.insert(all.end(), values.begin(), values.end());
      return absl::OkStatus();
    };
    const absl::Status status = store_->ReadCenter(job_id, {header, block});
    if (!status.ok()) return status;
    return all;
  }

  std::vector<float> Moved(float by) {
    std::vector<float> values = Ramp(0, 10);
    for (int i = 0; i < 4; ++i) values[i] += by;
    return values;
  }

  std::ostringstream log_;
  const std::shared_ptr<InMemoryStorage> storage_ = std::make_shared<InMemoryStorage>();
  std::unique_ptr<ParameterStore> store_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_STORE_H_
