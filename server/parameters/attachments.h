#ifndef HOOKE_SERVER_PARAMETERS_ATTACHMENTS_H_
#define HOOKE_SERVER_PARAMETERS_ATTACHMENTS_H_

// Knows the starts of a job's groups that have attached to a shard: which ones may speak, which one may write the
// initial values, which have ended, and how fast each is. It also knows how long the shard takes exchanges: until the
// job or its generation ends.
//
// A shard's snapshot has these facts, except speeds and the right to initialize, so that a restarted server refuses the
// same starts. attach.h decides who may initialize.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "algorithms/pace.h"
#include "server/parameters/attach.h"
#include "server/parameters/shard_plan.h"

namespace hooke {

// The part of Attachments that goes into a snapshot.
struct AttachedGroups {
  std::vector<uint32_t> incarnations;  // For each group, the highest incarnation that has attached; 0: none.
  std::vector<uint32_t> ended;         // By group: the incarnation for which End was called last; 0: none.
  bool stop = false;                   // End was called with `stops`.
  // The first incarnation of the next generation, if this one has ended. A shard that is restored refuses older starts,
  // too, and tells later ones to attach. 0: the generation has not ended.
  uint32_t successor = 0;
};

// Thread-safe. Its lock comes before all others of a shard; methods that say so take none.
class Attachments {
 public:
  // Speeds that were reported longer ago than this do not count.
  static constexpr absl::Duration kPaceMemory = absl::Minutes(10);

  // `plan` outlives the object. No group has attached, and the center is not initialized.
  explicit Attachments(const ShardPlan& plan);

  struct Answer {
    AttachAnswer answer = AttachAnswer::kWait;
    std::string reason;
    // Whether `answer` differs from this incarnation's last answer, so that it is worth a log line.
    bool changed = true;
  };
  // Attaches an incarnation of a group. ABORTED: a later incarnation of the group has attached, or the incarnation's
  // generation is over. INVALID_ARGUMENT: there is no such group, rank or incarnation.
  absl::StatusOr<Answer> Attach(absl::Time now, const Speaker& speaker, absl::Duration lease);

  // Checks that the speaker's incarnation is the last one that attached. Takes no lock. INVALID_ARGUMENT and ABORTED as
  // in Attach. NOT_FOUND: the incarnation is a later one, which has not attached here. Its generation may be later,
  // too, and have other numbers of groups and ranks.
  absl::Status Check(const Speaker& speaker) const;
  // Checks that the speaker may exchange. Errors are those of Check and WhyClosed, and NOT_FOUND if the center has no
  // values yet.
  absl::Status CheckOpen(const Speaker& speaker) const;
  // Checks that an exchange of the speaker may go on waiting. Takes no lock. Errors are those of Check and WhyClosed,
  // and UNAVAILABLE after StopWaiting.
  absl::Status CheckWaiting(const Speaker& speaker) const;

  // Returns whether the center has its initial values.
  bool initialized() const;
  // Calls `write` if the speaker has the right to initialize, and renews its lease. No other start gets the right
  // during the call, and the center does not become initialized. UNAVAILABLE: the speaker has no right; attach again.
  absl::Status WriteInitial(absl::Time now, const Speaker& speaker, absl::FunctionRef<void()> write);
  // Marks the center as initialized. OK, without effect, if it is initialized already. Errors are those of Check, and
  // UNAVAILABLE as in WriteInitial.
  absl::Status CompleteInitialize(const Speaker& speaker);

  struct Pace {
    double fastest_steps_per_second = 0;
    bool stops = false;  // End was called with `stops`.
  };
  // Records the speed of a group that has passed CheckOpen; 0: not measured.
  Pace TellPace(absl::Time now, uint32_t group, double steps_per_second);

  // Records that this start of the speaker's group has made its last exchange. With `stops`, the whole job is to stop.
  // Idempotent. Errors are those of Check, and ABORTED: the generation is over.
  absl::Status End(const Speaker& speaker, bool stops);
  // Returns whether this start of the group has ended. Takes no lock.
  bool HasEnded(const Speaker& speaker) const { return groups_[speaker.group].ended == speaker.incarnation; }

  // Ends all exchanges. `successor` is the first incarnation of the generation that begins; 0: the job has ended.
  void Close(uint32_t successor);
  bool closed() const { return closed_; }
  uint32_t successor() const { return successor_; }
  // Returns why the closed shard takes no more exchanges: ABORTED, the generation is over; FAILED_PRECONDITION, the job
  // has ended. Takes no lock.
  absl::Status WhyClosed() const;
  void StopWaiting() { stopping_ = true; }

  // Grows with each change that a snapshot must store, besides attached incarnations.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  AttachedGroups Copy() const;
  // Becomes what the snapshot says. The center is initialized. Call it before any other thread sees the object.
  void Restore(const AttachedGroups& groups);
  // Takes over from the closed `before`, whose groups were others, whether the center is initialized and the job stops.
  void GoOn(const Attachments& before);

 private:
  // Written under mutex_, and also read without it.
  struct Group {
    std::atomic<uint32_t> attached{0};  // The last incarnation that attached; 0: none.
    std::atomic<uint32_t> ended{0};     // The incarnation for which End was called last; 0: none.
  };
  struct Told {
    uint32_t incarnation = 0;
    AttachAnswer answer = AttachAnswer::kWait;
  };

  // Records the speaker's incarnation. Errors are those of Attach.
  absl::Status Admit(const Speaker& speaker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CheckInitializer(const Speaker& speaker) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const ShardPlan& plan_;
  const std::unique_ptr<Group[]> groups_;
  mutable absl::Mutex mutex_;
  AttachState attach_ ABSL_GUARDED_BY(mutex_);
  std::vector<Told> told_ ABSL_GUARDED_BY(mutex_);        // For each group: the last answer to Attach.
  std::vector<GroupPace> paces_ ABSL_GUARDED_BY(mutex_);  // Indexed by group.
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;            // The whole job is to stop.
  // These are atomic, because exchanges read them without mutex_, so that exchanges of different blocks stay parallel.
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> successor_{0};  // As in Close. Written before closed_.
  std::atomic<bool> stopping_{false};
  std::atomic<uint64_t> changes_{0};
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_ATTACHMENTS_H_
