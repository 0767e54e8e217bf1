#ifndef HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_

// A small shard to test with, in blocks of 4 values, and an exchange that two streams make at once.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// The first incarnation of a group attaches, at the epoch, for 20 s.
void AttachGroup(Shard& shard, uint32_t group);

// Of the request's job, which has one shard, holding `values`, all that the job has; the groups below `groups` have
// attached.
std::unique_ptr<Shard> MakeTestShard(const v1::AttachRequest& request, absl::Span<const float> values, uint32_t groups,
                                     std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

// Calls `send` on two threads, as when a stream broke and its exchange comes again on another while it still waits.
class TwoStreams {
 public:
  // `send`: whether its exchange was answered. Called on both threads, at the same time.
  explicit TwoStreams(const std::function<bool()>& send);
  ~TwoStreams();

  // Whether one of the two returned within `patience`.
  bool OneLeft(absl::Duration patience) { return one_left_.WaitForNotificationWithTimeout(patience); }
  // Waits for both; how many were answered.
  int Answered();

 private:
  absl::Notification one_left_;
  std::atomic<int> left_{0};
  std::atomic<int> answered_{0};
  std::vector<std::thread> threads_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_
