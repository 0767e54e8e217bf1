#ifndef HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_
#define HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_

// A rank's part in its group's exchanges with the center: this rank's slice, or a fragment of it, with the servers, as
// the job's rule has it (group_rule.h), then all-gather: all ranks hold the same vector again.
//
// An exchange has two halves, and the group may train in between:
//
//   Begin   what is to be sent is copied, as training changes it, and starts on its way
//   Settle  what is not answered yet is waited for; the answers, kept aside until now, are applied; all-gather
//
// Where nothing comes between them ever (GroupExchangeOptions::overlaps), nothing is copied or kept: answers are
// applied as they come. A server that fails leaves its part of the vector as it is, until a later exchange; what it
// answers then to the earlier one is applied when the group exchanges that part again, so that ranks always hold the
// same.
//
// Made and used by the trainer's thread; Begin and Settle by all ranks after the same steps.

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
#include "algorithms/compression.h"
#include "algorithms/group_rule.h"
#include "algorithms/sharding.h"
#include "algorithms/update_rule.h"
#include "mpi_group/group.h"
#include "mpi_group/tensor_list.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/center_client.h"
#include "worker/exchange/exchange.h"
#include "worker/exchange/server_notices.h"
#include "worker/model/arena.h"
#include "worker/report/reporter.h"

namespace hooke {

// All outlive the exchange.
struct GroupExchangeParts {
  Group* group = nullptr;
  const Arena* arena = nullptr;
  CenterClient* center = nullptr;
  Reporter* reporter = nullptr;
};

struct GroupExchangeOptions {
  v1::Sender sender;
  RuleName rule = RuleName::kElastic;
  Encoding encoding;            // Of what the group sends.
  bool overlaps = false;        // Settle does not always follow Begin at once, or there are fragments.
  uint32_t window_blocks = 16;  // Attached::window_blocks.
  // How much longer than exchange_timeout an answer may take, as servers wait for other groups.
  absl::Duration grace = absl::ZeroDuration();
  bool awaits_quorum = false;  // GroupPatience::awaits_quorum.
  absl::Duration exchange_timeout = absl::Seconds(5);
  absl::Duration collective_timeout = absl::Seconds(30);
  std::function<absl::Time()> clock;
};

class GroupExchange {
 public:
  // The arena holds what the center holds.
  GroupExchange(const GroupExchangeParts& parts, GroupExchangeOptions options);
  // Gives up what is in flight.
  ~GroupExchange();

  // The rule's.
  bool StepsLocally() const { return rule_->StepsLocally(); }
  // After each step, with its gradients in the arena.
  void AddStep() { rule_->AddStep(parts_.arena->gradients()); }

  // The step after which the exchange began that has not been settled.
  std::optional<uint64_t> in_flight_since() const { return in_flight_since_; }

  // Whether this rank's last exchange missed a server. Never on the rank's own word alone may the group take a branch.
  bool missed() const { return missed_; }
  uint64_t settled() const { return settled_; }  // So many exchanges were.
  // Whether the first server of the list is known to be away, and so not worth a question.
  bool SkipsFirstServer() const;
  // Whether this rank's exchanges do without a server now.
  bool SkipsSome() const { return client_->SkipsSome(); }

  // None is in flight. Sends `fragment` of the vector ({0, 1}: all) as it is after `step`. The last exchange of a job
  // may take longer: no next one makes up for it.
  struct Exchange {
    uint64_t step = 1;
    Cut fragment = {0, 1};
    bool last = false;
  };
  void Begin(const Exchange& exchange);

  // One is in flight. OK, also where servers missed it, which they are said to have in a notice; or the error of a
  // server, or of the group, with which the rank gives up. The last exchange must reach every server: on all ranks
  // UNAVAILABLE otherwise.
  absl::Status Settle();

 private:
  // An answer, until it is applied.
  struct Held {
    uint64_t first = 0;
    std::vector<float> values;
    std::vector<float> sent;  // What it answers, where that does not lie in copy_.
    bool earlier = false;     // BlockAnswer::earlier.
  };

  std::unique_ptr<ExchangeClient> MakeClient();
  absl::Status Recreate(size_t server, absl::Time deadline);
  absl::Span<const float> Copy(absl::Span<const float> prepared);
  AnswerSink Sink();
  void Take(const BlockAnswer& answer);
  void NoteCenter(const std::vector<ServerOutcome>& outcomes);
  void Hold(const BlockAnswer& answer);
  void TakeHeld();
  bool InFragment(uint64_t value) const;
  void SetSettling(bool settling);
  absl::Status AllGather();

  const GroupExchangeParts parts_;
  const GroupExchangeOptions options_;
  const Partition partition_;
  const Cut slice_;
  const uint64_t servers_;
  const absl::Span<float> vector_;  // The arena's.

  std::unique_ptr<GroupRule> rule_;
  ServerNotices notices_;
  std::optional<uint64_t> in_flight_since_;
  Exchange exchange_;  // In flight.
  bool missed_ = false;
  uint64_t settled_ = 0;
  std::vector<Range> ranges_;  // Of it; this rank's.
  // With overlap, what is sent, as long as the vector; only this rank's slice is ever touched, and so in memory.
  std::unique_ptr<float[]> copy_;
  // By rules of which SendsFromLastAnswer holds, as long as the vector: the center as it last came, of this rank's
  // slice block by block, of others' as the all-gather brings it, unless this rank's exchange with that server failed.
  // There it has, too, what the others trained meanwhile with a delay, what compression left behind, and what they have
  // trained where their exchange failed. Meaningful at the shards of servers that this rank exchanges with.
  std::unique_ptr<float[]> center_;

  absl::Mutex mutex_;
  bool settling_ ABSL_GUARDED_BY(mutex_) = false;   // The trainer waits in Settle, and does not touch the vector;
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;  // it never will again.
  // In the order in which they came. A block has at most two: one to an earlier exchange.
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<ExchangeClient> client_;  // Last: its threads use the rest.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_GROUP_EXCHANGE_H_
