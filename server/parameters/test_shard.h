#ifndef HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_
#define HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_

// A small shard for tests, in blocks of 4 values, and an exchange that two streams make at once.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/shard.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// Attaches the first incarnation of a group, at the Unix epoch, with a lease of 20 s.
void AttachGroup(Shard& shard, uint32_t group);

// Makes the shard of `request`, in blocks of 4 values, and initializes it with its part of `values`, the whole vector.
// Attaches groups 0 to `groups` - 1.
std::unique_ptr<Shard> MakeTestShard(const v1::AttachRequest& request, absl::Span<const float> values, uint32_t groups,
                                     std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>());

// Makes one exchange of the first block, with all values equal to `value`. Returns the answer's first value.
absl::StatusOr<float> Send(Shard& shard, const Speaker& speaker, uint64_t sequence, float value);

// Calls `send` on two threads. A server sees such calls when a stream broke: the old stream's exchange still waits, and
// the group sends it again on another stream.
class TwoStreams {
 public:
  // `send` returns whether its exchange was answered. Both threads call it at the same time.
  explicit TwoStreams(const std::function<bool()>& send);
  ~TwoStreams();

  // Returns whether one of the two calls returned within `patience`.
  bool OneLeft(absl::Duration patience) { return one_left_.WaitForNotificationWithTimeout(patience); }
  // Waits for both threads and returns how many of the exchanges were answered.
  int Answered();

 private:
  absl::Notification one_left_;
  std::atomic<int> left_{0};
  std::atomic<int> answered_{0};
  std::vector<std::thread> threads_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_TEST_SHARD_H_
