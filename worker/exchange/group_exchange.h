#ifndef HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_

// A rank's part in its group's exchanges with the center. The rank exchanges its slice of the vector, or a fragment of
// it, with the servers by the job's rule (group_rule.h). Then an all-gather gives all ranks the same vector again.
//
// An exchange has two halves, and the group may train in between:
//
//   Begin   copies the values to send, because training changes them, and starts to send them
//   Finish  waits for the missing answers, applies all answers, which are kept until then, and runs the all-gather
//
// If Finish always follows Begin at once (no GroupExchangeOptions::overlaps), nothing is copied or kept: answers are
// applied as they come.
//
// A server that fails leaves its part of the vector unchanged. Its answer may come with a later exchange. The answer is
// applied when the group exchanges the same part again, so that all ranks always hold the same vector.
//
// The trainer's thread makes and uses the GroupExchange. All ranks call Begin and Finish after the same steps.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "algorithms/center_gap.h"
#include "algorithms/center_rule.h"
#include "algorithms/compression.h"
#include "algorithms/group_rule.h"
#include "algorithms/sharding.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange_client.h"
#include "worker/exchange/server_notices.h"
#include "worker/model/arena.h"
#include "worker/report/reporter.h"

namespace hooke {

// All these objects outlive the GroupExchange.
struct GroupExchangeDependencies {
  Group* group = nullptr;
  const Arena* arena = nullptr;
  CenterClient* center = nullptr;
  Reporter* reporter = nullptr;
};

struct GroupExchangeOptions {
  v1::Sender sender;
  RuleName rule = RuleName::kElastic;
  Encoding encoding;            // Encoding of the values that the group sends.
  uint32_t slices = 0;          // JobSpecForShard::slices; 0: as many as the group has ranks.
  bool overlaps = false;        // Whether training goes on between Begin and Finish, or the vector has fragments.
  uint32_t window_blocks = 16;  // Attached::window_blocks.
  // How much longer than exchange_timeout an answer may take, because servers wait for other groups.
  absl::Duration grace = absl::ZeroDuration();
  bool awaits_quorum = false;  // GroupPatience::awaits_quorum.
  absl::Duration exchange_timeout = absl::Seconds(5);
  absl::Duration collective_timeout = absl::Seconds(30);
  std::function<absl::Time()> clock;
};

class GroupExchange {
 public:
  // When it is called, the arena's vector must equal the center.
  GroupExchange(const GroupExchangeDependencies& deps, GroupExchangeOptions options);
  // Gives up the exchange in flight, if there is one.
  ~GroupExchange();

  // Whether the group's own optimizer steps between exchanges (GroupRule::StepsLocally).
  bool StepsLocally() const { return rule_->StepsLocally(); }
  // Gives the step's gradients to the rule. Call it after each step, while the arena holds them.
  void AddGradient() { rule_->AddGradient(deps_.arena->gradients()); }

  // The step after which the exchange in flight began, if there is one.
  std::optional<uint64_t> in_flight_since() const { return in_flight_since_; }

  // Whether this rank's latest exchange missed a server. Ranks may differ here: before the group takes a branch on it,
  // the ranks must agree.
  bool missed() const { return missed_; }
  uint64_t finished() const { return finished_; }  // Number of finished exchanges.
  // Whether the first server is known to be away. The ExchangePlanner then does not ask it.
  bool SkipsFirstServer() const;
  // How far this rank's slice was from the center, at the last exchange that was measured. Zeros: none was. Call it
  // between exchanges.
  const CenterGap& gap() const { return gap_; }
  // Whether this rank's exchanges skip any server now.
  bool SkipsSome() const { return client_->SkipsSome(); }

  // An exchange of `fragment` of the vector ({0, 1}: all of it) as it is after `step`. The job's last exchange may take
  // longer, because no later one makes up for it.
  struct Exchange {
    uint64_t step = 1;
    Cut fragment = {0, 1};
    bool last = false;
  };
  // Begins `exchange`. No other exchange may be in flight.
  void Begin(const Exchange& exchange);

  // Ends the exchange in flight. OK even if servers missed it; a notice names them. An error comes from a server or
  // from the group, and the rank gives up. If the last exchange misses a server, all ranks return UNAVAILABLE, or a
  // server's final error.
  absl::Status Finish();

 private:
  // An answer that waits to be applied.
  struct Held {
    uint64_t first = 0;
    std::vector<float> values;
    std::vector<float> sent;  // The values that were sent and are answered; empty if they lie in copy_.
    bool earlier = false;     // BlockAnswer::earlier.
  };

  std::unique_ptr<ExchangeClient> MakeClient();
  absl::Status Recreate(size_t server, absl::Time deadline);
  absl::Span<const float> Copy(absl::Span<const float> prepared);
  AnswerSink Sink();
  void Measure(const BlockAnswer& answer);
  void Take(const BlockAnswer& answer);
  std::vector<Range> RangesOf(uint64_t rank) const;
  // Whether this rank has a slice.
  bool HasSlice() const { return static_cast<uint64_t>(deps_.group->rank()) < slices_; }
  void NoteCenter(const std::vector<ServerOutcome>& outcomes);
  void Hold(const BlockAnswer& answer);
  void TakeHeld();
  bool InFragment(uint64_t value) const;
  void SetFinishing(bool finishing);
  absl::Status AllGather();

  const GroupExchangeDependencies deps_;
  const GroupExchangeOptions options_;
  const Partition partition_;
  const uint64_t ranks_;   // The ranks of the group.
  const uint64_t slices_;  // The ranks that exchange, counted from rank 0. Each has one of so many slices.
  const uint64_t servers_;
  const absl::Span<float> vector_;  // The arena's vector.

  std::unique_ptr<GroupRule> rule_;
  ServerNotices notices_;
  std::optional<uint64_t> in_flight_since_;
  Exchange exchange_;  // The exchange that began last.
  // Whether this rank measures its distance from the center in exchange_. Reports go out twice a second, so nobody
  // would see more measurements.
  bool measures_ = false;
  absl::Time measures_next_ = absl::InfinitePast();
  CenterGap gap_;
  bool missed_ = false;
  uint64_t finished_ = 0;
  std::vector<Range> ranges_;  // The values of exchange_ that this rank exchanges.
  // Only if exchanges overlap: a copy of the values being sent, as long as the vector. Only this rank's slice is ever
  // touched, so only that takes memory.
  std::unique_ptr<float[]> copy_;
  // Only if SendsFromLastAnswer(rule) and Exchanges: our last copy of the center, with as many values as the vector.
  // Recreate rebuilds a lost shard from it. Only the shards of servers with which this rank exchanges are meaningful.
  //
  // Our own slice comes from answers. The other ranks' slices come from the all-gather, unless our own exchange with
  // that server failed. Those slices are not exact: they include steps that were trained during a delay or after a
  // failed exchange, and what compression left out.
  std::unique_ptr<float[]> center_;

  absl::Mutex mutex_;
  bool finishing_ ABSL_GUARDED_BY(mutex_) = false;  // The trainer waits in Finish and does not touch the vector.
  // The sum of the gaps of the answers to exchange_ so far; nullopt: no answer gave a gap.
  std::optional<CenterGap> measured_ ABSL_GUARDED_BY(mutex_);
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // The destructor has begun, so Finish will not be called again.
  // Answers in the order of arrival. At most two of them are for the same block; one of the two answers an earlier
  // exchange.
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<ExchangeClient> client_;  // The last member, so destroyed first: its threads use the others.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_
