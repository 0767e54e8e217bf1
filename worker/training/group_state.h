#ifndef HOOKE_WORKER_TRAINING_GROUP_STATE_H_
#define HOOKE_WORKER_TRAINING_GROUP_STATE_H_

// Keeps a group's own state on the servers, so that a later start of the group goes on with it. The state has the
// moments of the group's optimizer and the bytes that the user's program adds. If a restart goes on from the group's
// own values and not from the center's, the state has them, too (GroupStateOptions::with_values).
//
// Each rank keeps its own state on one server. A state counts only once all ranks have kept it. Until then the servers
// also hold the state before it. So after the first complete state there is always a step from which all ranks can go
// on. Rank 0 decides by its clock when a state is due. The step's collective carries that decision to the other ranks
// in its statistics. It also tells them whether all ranks have kept the last state.
//
//   Restore   once, before training: the newest state that all ranks have
//   each step:
//     Propose   before the step's collective
//     Learn     after it
//     Take      after the step, if wanted(): copies the values, and makes a state due
//     Keep      before the next Learn: sends the state
//
// If a server does not take a state, the rank sends a notice, and training goes on. All calls come from the rank's
// thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "clocks/steady_time.h"
#include "mpi_group/group.h"
#include "proto/parameter_server.pb.h"
#include "worker/exchange/server_calls.h"
#include "worker/report/reporter.h"

namespace hooke {

// A rank's state, as a server keeps it. docs/snapshot.md describes the bytes.
struct KeptState {
  // This rank's even part of the group's vector. Empty if a restarted group takes the center's values.
  std::vector<float> values;
  std::string optimizer;  // The state of the optimizer that Hooke steps; empty if there is none.
  std::string own;        // The state of the user's program.
};
std::string EncodeState(const KeptState& state);
// Reads what EncodeState wrote. DATA_LOSS: these are not the bytes of a state.
absl::StatusOr<KeptState> DecodeState(absl::string_view bytes);

struct GroupStateOptions {
  v1::Sender sender;
  bool with_values = false;  // Whether a state has the group's values, from which a restart then goes on.
  // Time from one state to the next. If states take long to send, the time is longer: fifty times what the last one
  // took, once all ranks have a state. After several failures in a row it doubles, up to 16 times the interval.
  absl::Duration interval = absl::Seconds(30);
  // States of starts below this one are of earlier generations of the job; 0: there are none. The values of such a
  // state are older than the center's. They are taken only if `takes_earlier_values`.
  uint32_t first_incarnation = 0;
  bool takes_earlier = true;  // Whether a state of an earlier generation is looked for at all.
  bool takes_earlier_values = false;
  absl::Duration timeout = absl::Seconds(10);  // Limit for one call to a server; less than the group's deadline.
  std::function<absl::Time()> clock = SteadyTime;
};

// Number of the arena's statistics that a GroupState uses.
inline constexpr uint64_t kGroupStateStatistics = 3;

class GroupState {
 public:
  // All these objects outlive the GroupState. `servers` is not empty.
  GroupState(GroupStateOptions options, Group* group, const std::vector<ServerCalls*>& servers, Reporter* reporter);

  // Collective. Finds the newest state that all ranks have, and returns its step; nullopt: there is none. If the state
  // has values, all ranks then hold the group's values in `vector`. If the state is stale, `vector` stays as it is. A
  // state is stale if it is far behind `center_step`, the step of the center, because the servers took no newer state.
  // Errors are the group's, or a server's when it does not answer or does not list its states.
  absl::StatusOr<std::optional<uint64_t>> Restore(absl::Span<float> vector, uint64_t center_step);
  // Returns whether Restore found a stale state. The result is the same on all ranks.
  bool stale() const { return stale_; }
  // Returns whether Restore found a state of an earlier generation. The result is the same on all ranks.
  bool earlier() const { return earlier_; }
  // Returns the state that Restore found.
  const std::optional<KeptState>& restored() const { return restored_; }

  // Writes this rank's kGroupStateStatistics values for the step's collective.
  void Propose(absl::Span<float> statistics) const;
  // Takes the means of these values over the ranks. A state that was due is not due any more.
  void Learn(absl::Span<const float> statistics);

  // Returns whether a state is wanted after this step. The result is the same on all ranks.
  bool wanted() const { return wanted_; }
  // Makes the group's state after `step` due. `vector` is the group's, and may change after this call.
  void Take(uint64_t step, absl::Span<const float> vector);
  // Returns whether Take was called, and neither Keep nor Learn since then.
  bool due() const { return due_.has_value(); }
  // Sends the state that is due. If no state is known to be complete on all ranks, and the server does not answer,
  // tries until the timeout. ABORTED: a later start of the group has replaced this one. Other failures are sent as
  // notices, and the result is OK.
  absl::Status Keep(std::string optimizer, absl::string_view own);

 private:
  ServerCalls& Server() const;
  absl::StatusOr<std::vector<v1::StateId>> ListOwn();
  absl::StatusOr<std::optional<v1::StateId>> FindCommon(const std::vector<v1::StateId>& own);
  absl::Status Fetch(const v1::StateId& id, std::optional<uint64_t> values);
  absl::Status Send(const StateToKeep& keep, absl::Duration encoding);
  void Notice(absl::string_view what, const absl::Status& why);

  const GroupStateOptions options_;
  Group* const group_;
  const std::vector<ServerCalls*> servers_;
  Reporter* const reporter_;
  std::optional<KeptState> restored_;
  uint64_t gap_ = 0;  // Steps between the state that FindCommon found and the state before it; 0: not known.
  bool stale_ = false;
  bool earlier_ = false;

  bool wanted_ = false;
  absl::Time last_time_;                   // When a state was last due. Before the first state, when training began.
  absl::Duration cost_;                    // The mean of the ranks' times for the last state that each has kept.
  absl::Duration own_cost_;                // This rank's time for the last state that it has kept.
  std::optional<v1::StateId> complete_;    // The newest state that all ranks are known to have.
  std::optional<v1::StateId> first_;       // The first state that was sent.
  std::optional<v1::StateId> taken_;       // The last state that was due, until the ranks know whether all have it.
  std::optional<std::vector<float>> due_;  // The values of the state that is due.
  bool kept_ = false;                      // Whether this rank has kept `taken_`.
  uint32_t incomplete_ = 0;                // Number of states in a row that not all ranks have kept.
  uint64_t failures_ = 0;                  // Number of states since the last one that this rank has kept.
};

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_GROUP_STATE_H_
