#ifndef HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_
#define HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_

// Decides which stream of a rank may exchange. A rank has one stream at a time. Its next stream ends the previous one,
// because a rank may connect again when its stream hangs. Streams of a replaced incarnation are refused.
//
// An ended stream may go on waiting for its round, but a rank can have only a few such streams. So a rank takes little
// more memory than its job's plan has counted, whatever it sends. DirectExchanges and GrpcExchanges each have a
// RankSeats of their own.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  // `patience` is how long a new stream waits for an ended stream to leave. Ended streams leave at once, unless they
  // wait for a round.
  explicit RankSeats(absl::Duration patience = absl::Seconds(3),
                     std::shared_ptr<WaitClock> clock = std::make_shared<SteadyWaitClock>())
      : patience_(patience), clock_(std::move(clock)) {}

  // A stream, registered until it no longer waits for other groups. Its calls come from one thread.
  class Stream {
   public:
    // `seats` outlives the stream. A later stream must have a higher number. `end` ends the stream. Another thread may
    // call `end`, under a lock, until the destructor returns. `end` must neither block nor call RankSeats.
    Stream(RankSeats* seats, uint64_t number, std::function<void()> end);
    // Leaves the seat.
    ~Stream();
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    // Asks for the seat of the sender's rank. OK: the stream has it. ABORTED: a later incarnation has it. UNAVAILABLE:
    // a later stream has it, too many earlier streams still wait for a round, or Stop was called. nullopt: the stream
    // must wait; call it again when another stream has left, and at give_up().
    std::optional<absl::Status> TryTakeSeat(const v1::Sender& sender);
    absl::Time give_up() const { return give_up_; }

   private:
    friend class RankSeats;
    enum class State { kNew, kAsks, kSeated, kRefused };

    RankSeats* const seats_;
    const uint64_t number_;
    const std::function<void()> end_;
    v1::Sender sender_;
    State state_ = State::kNew;
    absl::Time give_up_ = absl::InfiniteFuture();
  };

  // Grants no more seats, not even to streams that have asked already. Streams that have a seat keep it.
  void Stop();

 private:
  // The seat's job, group and rank.
  using Key = std::tuple<std::string, uint32_t, uint32_t>;
  struct Seat {
    Stream* stream = nullptr;  // The stream that may exchange; null if it left or was ended.
    // Incarnation and number of the last stream that asked for the seat.
    uint32_t incarnation = 0;
    uint64_t number = 0;
    int streams = 0;  // Streams that got this seat and have not been destroyed.
    int asking = 0;
  };

  static Key KeyOf(const v1::Sender& sender) { return {sender.job_id(), sender.group(), sender.rank()}; }
  std::optional<absl::Status> TryTake(Stream& stream);
  // Leaves the seat, or gives up asking for it.
  void Leave(const Stream& stream);
  // Notes that the stream asks for its seat. Unless a later stream has asked before, ends the stream that has the seat.
  std::map<Key, Seat>::iterator Ask(Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns nullopt if a stream that asks must wait. Otherwise the stream does not ask any more.
  std::optional<absl::Status> Decide(Stream& stream, std::map<Key, Seat>::iterator found)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns OK if no later stream has asked for this seat. A later stream has a higher incarnation, or the same and a
  // higher number.
  absl::Status CheckLast(const Stream& stream, const Seat& seat) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::optional<absl::Status> Decision(const Stream& stream, const Seat& seat) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void Forget(std::map<Key, Seat>::iterator seat) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const absl::Duration patience_;
  const std::shared_ptr<WaitClock> clock_;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Key, Seat> seats_ ABSL_GUARDED_BY(mutex_);  // The seats with a stream that waits for them or has not left.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_RANK_SEATS_H_
