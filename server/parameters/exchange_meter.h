#ifndef HOOKE_SERVER_PARAMETERS_EXCHANGE_METER_H_
#define HOOKE_SERVER_PARAMETERS_EXCHANGE_METER_H_

// Counts the exchanges of one shard, for people. Nothing in the server depends on the counts. Each call is a few atomic
// additions, against the microseconds that a message of values takes.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// Upper bounds of the buckets of ExchangeCounts, without the last bucket, which has all larger values.
inline constexpr std::array<double, 16> kAnswerSecondsBounds = {0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                                0.05,   0.1,    0.2,    0.5,   1,     2,     5,    10};
inline constexpr std::array<double, 9> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 64, 128};

struct ExchangeCounts {
  uint64_t refused = 0;         // Messages that ended with an error.
  uint64_t received_bytes = 0;  // Payloads of messages that were answered, as they were sent: perhaps compressed.
  uint64_t sent_bytes = 0;      // Payloads of their answers.
  // Messages that were answered, by the time from their arrival to their answer. It includes waits for other groups,
  // and not the network.
  std::vector<uint64_t> answers;  // One more than kAnswerSecondsBounds.
  absl::Duration answer_time;     // Of all messages together.
  // Changes of a block by one group alone, not in a round, under rules that answer with the center. They are counted by
  // staleness: the updates of the block since the group received it.
  std::vector<uint64_t> staleness;  // One more than kStalenessBounds.
  uint64_t staleness_updates = 0;   // Of all blocks together.
  uint64_t rounds = 0;              // Blocks to which a round of several groups was applied.
  // Indexed by group: the time since its last message was answered; nullopt if none was answered yet.
  std::vector<std::optional<absl::Duration>> idle;
};

// Thread-safe.
class ExchangeMeter {
 public:
  ExchangeMeter(uint32_t groups, std::shared_ptr<WaitClock> clock);

  absl::Time Now() const { return clock_->Now(); }

  struct Message {
    uint32_t group = 0;  // < `groups`.
    absl::Time arrived;  // Of Now().
    uint64_t received_bytes = 0;
    uint64_t sent_bytes = 0;
  };
  // Counts a message that is answered now. Returns this time, as Now() does.
  absl::Time Answered(const Message& message);
  void Refused() { Add(refused_, 1); }
  void AppliedAlone(uint64_t staleness);
  void AppliedRound() { Add(rounds_, 1); }

  // Adds the counts of another meter, but not the groups' times, because the groups are others.
  void AddCounts(const ExchangeCounts& counts);

  // The counts are read one after another while others may grow.
  ExchangeCounts Read() const;

 private:
  using Count = std::atomic<uint64_t>;
  static void Add(Count& count, uint64_t more) { count.fetch_add(more, std::memory_order_relaxed); }

  const std::shared_ptr<WaitClock> clock_;
  const uint32_t groups_;
  Count refused_{0};
  Count received_bytes_{0};
  Count sent_bytes_{0};
  std::array<Count, kAnswerSecondsBounds.size() + 1> answers_{};
  Count answer_nanoseconds_{0};
  std::array<Count, kStalenessBounds.size() + 1> staleness_{};
  Count staleness_updates_{0};
  Count rounds_{0};
  // Indexed by group: the time at which its last message was answered, in nanoseconds of the clock; 0 if none was
  // answered yet.
  const std::unique_ptr<std::atomic<int64_t>[]> last_;
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_EXCHANGE_METER_H_
