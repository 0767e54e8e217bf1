#include "server/parameters/test_shard.h"

#include <gtest/gtest.h>

#include <utility>

namespace hooke {

void AttachGroup(Shard& shard, uint32_t group) {
  EXPECT_TRUE(shard.Attach(absl::UnixEpoch(), {group, 0, 1}, absl::Seconds(20)).ok());
}

std::unique_ptr<Shard> MakeTestShard(const v1::AttachRequest& request, absl::Span<const float> values, uint32_t groups,
                                     std::shared_ptr<WaitClock> clock) {
  auto shard = Shard::Create(PlanShard(request, 4).value(), std::move(clock)).value();
  AttachGroup(*shard, 0);
  for (uint64_t block = 0; block < shard->blocks(); ++block) {
    const Range range = shard->BlockRange(block);
    const absl::Span<const float> part = values.subspan(range.begin, range.size());
    EXPECT_TRUE(shard->WriteInitial(absl::UnixEpoch(), {}, range.begin, part).ok());
  }
  EXPECT_TRUE(shard->CompleteInitialize({}).ok());
  for (uint32_t group = 0; group < groups; ++group) AttachGroup(*shard, group);
  return shard;
}

absl::StatusOr<float> Send(Shard& shard, const Speaker& speaker, uint64_t sequence, float value) {
  const std::vector<float> values(4, value);
  std::vector<float> answer(4);
  const absl::Status status = shard.ApplyBlock({speaker, sequence, 0}, values, absl::MakeSpan(answer));
  if (!status.ok()) return status;
  return answer[0];
}

TwoStreams::TwoStreams(const std::function<bool()>& send) {
  threads_.reserve(2);
  for (int stream = 0; stream < 2; ++stream) {
    threads_.emplace_back([this, send] {
      if (send()) ++answered_;
      if (left_++ == 0) one_left_.Notify();
    });
  }
}

TwoStreams::~TwoStreams() { Answered(); }

int TwoStreams::Answered() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  return answered_;
}

}  // namespace hooke
