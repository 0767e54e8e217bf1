#ifndef HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_

// Settling a failed collective: each rank makes a statement about it, and from all statements follows one verdict for
// the user. Pure: the transports carry the statements (mpi/mpi_notices.h, in_process_transport.cc).

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/call_label.h"

namespace hooke {

// The last calls that a rank has begun. Several are kept because some calls end earlier on some ranks, so ranks may be
// a few calls apart.
class CallHistory {
 public:
  static constexpr size_t kCalls = 8;

  void Begin(const CallLabel& label, absl::Time now) {
    last_ = (last_ + 1) % kCalls;
    calls_[last_] = label;
    begun_ = now;
    fingerprint_ = label.Fingerprint();
  }

  // Label, fingerprint and start of the last call. Before the first call they belong to a default CallLabel.
  const CallLabel& last() const { return calls_[last_]; }
  uint32_t fingerprint() const { return fingerprint_; }
  absl::Time begun() const { return begun_; }

  // The calls, oldest first, without those of number 0.
  std::vector<CallLabel> Calls() const;

 private:
  std::array<CallLabel, kCalls> calls_;
  size_t last_ = 0;
  uint32_t fingerprint_ = CallLabel().Fingerprint();
  absl::Time begun_ = absl::InfinitePast();
};

// One rank's statement. It travels as raw bytes, because the ranks of a group run the same program; IsValid checks
// those that are received. Texts are zero-terminated, and cut if they are too long.
struct Statement {
  enum class Kind : int32_t {
    kFailure,  // The collective failed on that rank; `code` and `message` say how.
    kHeard,    // The rank did not fail itself; it only heard of another rank's failure.
    // The error that all ranks give their users. One rank derives it, from all statements or from those that it heard
    // by its deadline. `calls` is 0.
    kVerdict,
  };
  struct Call {
    uint64_t number;
    uint32_t fingerprint;
    std::array<char, 124> text;
  };

  Kind kind;
  int32_t code;        // absl::StatusCode
  int64_t in_call_us;  // Time since the rank entered its last call.
  uint64_t calls;      // Number of calls in `recent`, which holds the oldest first.
  std::array<Call, CallHistory::kCalls> recent;
  std::array<char, 1024> message;
};

// The statement of a rank whose call returned `failure`. Its kind is kHeard if `failure` is ABORTED, as from
// ReportedBy, else kFailure.
Statement FailureStatement(const CallHistory& history, const absl::Status& failure, absl::Time now);
Statement VerdictStatement(const absl::Status& verdict);
bool IsValid(const Statement& statement);

// The ABORTED error for a rank that learns from `statement` that rank `from` failed.
absl::Status ReportedBy(int from, const Statement& statement);

// Collects what one rank hears from all ranks about a failed collective, and derives the verdict from it.
class Settlement {
 public:
  explicit Settlement(int size) : statements_(size), left_(size, false), lost_(size, false) {}

  // Takes the first statement of each rank, and the first verdict of any rank. Later ones and invalid ones are ignored.
  void Hear(int from, const Statement& statement);
  // Notes that rank `from` has left and will make no statement.
  void HearLeft(int from) { left_[from] = true; }

  // Notes that the process of `rank` has ended without leaving the group. No statement will come from it. Verdict()
  // names it as it names a rank that makes no statement.
  void HearLost(int rank) { lost_[rank] = true; }

  // any() is true once some rank has made a statement. FirstReport() is then the ABORTED error that names the first
  // such rank; before, it is OK.
  bool any() const { return first_ >= 0; }
  absl::Status FirstReport() const { return any() ? ReportedBy(first_, *statements_[first_]) : absl::OkStatus(); }

  bool has_verdict() const { return verdict_.has_value(); }
  // True if there is nothing left to wait for: a verdict is known, or every rank has made a statement, left or ended.
  bool complete() const;
  // True if `rank` is the one that gives the verdict: the lowest rank that failed by itself, else the lowest that has
  // made a statement. The others wait for its verdict, so that all users get the same one.
  bool IsSpeaker(int rank) const;

  // Returns the verdict that was heard, else the one that follows from the statements; there must be at least one.
  // Never OK. It names the ranks that diverge, are missing or failed. INVALID_ARGUMENT: ranks are in different calls.
  // DEADLINE_EXCEEDED: some ranks did not come. UNAVAILABLE: some ranks left, or others saw before any deadline that
  // they had gone. Otherwise it has the code of the rank that failed.
  absl::Status Verdict() const;

 private:
  std::optional<absl::Status> Divergence() const;
  std::optional<absl::Status> Absence() const;
  absl::Status FirstFailure() const;

  std::vector<std::unique_ptr<const Statement>> statements_;  // One per rank; null as long as the rank has made none.
  std::vector<bool> left_;
  std::vector<bool> lost_;
  std::optional<absl::Status> verdict_;
  int first_ = -1;
};

// Formats ascending ranks, as "rank 0, 2, 5-8".
std::string RankList(const std::vector<int>& ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_
