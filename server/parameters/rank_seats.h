#ifndef HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_
#define HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_

// Which stream of a rank is the one that exchanges. A rank of a group has one at a time: its next one ends the one
// before, as a rank that connects again may do so because that one hangs, and that of an incarnation that has been
// replaced is refused. One that was ended may go on waiting for its round: there are no more than a few of those. So a
// rank takes little more than its job's plan has counted, whatever it sends. Used by DirectExchanges and
// ParameterService, each with seats of its own.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/wait_clock.h"

namespace hooke {

// Thread-safe.
class RankSeats {
 public:
  // For one that was ended to end: those that wait for nothing do at once.
  explicit RankSeats(absl::Duration patience = absl::Seconds(3),
                     std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>())
      : patience_(patience), clock_(std::move(clock)) {}

  // A stream, for as long as it may wait for other groups. Of one thread.
  class Stream {
   public:
    // `number` grows from stream to stream of these seats, which outlive it. `end` ends the stream; it is called by
    // another thread, under a lock, until the destructor returns, and neither waits nor comes back here.
    Stream(RankSeats* seats, uint64_t number, std::function<void()> end);
    // Leaves the seat.
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Once, when it is known whose stream it is. ABORTED: a later incarnation has the seat. UNAVAILABLE: a later stream
    // has it, too many before still wait for a round, or Stop was called.
    absl::Status TakeSeat(const v1::Sender& sender);

   private:
    friend class RankSeats;

    RankSeats* const seats_;
    const uint64_t number_;
    const std::function<void()> end_;
    v1::Sender sender_;
    bool seated_ = false;
  };

  // Who waits for a seat waits no longer, and nobody gets one from now on. Ends no stream.
  void Stop();

 private:
  // Job, group and rank.
  using Key = std::tuple<std::string, uint32_t, uint32_t>;
  struct Seat {
    Stream* stream = nullptr;  // Null: it has ended, or was ended.
    // Of the last stream that asked for the seat.
    uint32_t incarnation = 0;
    uint64_t number = 0;
    int streams = 0;  // That had the seat and have not left.
    int waiting = 0;
  };

  static Key KeyOf(const v1::Sender& sender) { return {sender.job_id(), sender.group(), sender.rank()}; }
  absl::Status Take(Stream& stream);
  void Leave(const Stream& stream);
  // OK where `stream` is the last one that asked for this seat.
  absl::Status CheckLast(const Stream& stream, const Seat& seat) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitRoom(const Stream& stream, Seat& seat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(std::map<Key, Seat>::iterator seat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration patience_;
  const std::shared_ptr<WaitClock> clock_;
  absl::Mutex mutex_;
  SteadyCondition changed_;  // What AwaitRoom looks at.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Key, Seat> seats_ ABSL_GUARDED_BY(mutex_);  // That somebody has, had and has not left, or waits for.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_
