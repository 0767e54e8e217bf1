#ifndef HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_
#define HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_

// After a failed collective: what each rank says about it, and what follows from that for the user. Knows no threads,
// clocks or channels; transports carry the statements (mpi/mpi_notices.h, in_process_transport.cc).

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "mpi_group/transport/call_label.h"

namespace hooke {

// The calls a rank has begun last; ranks may be a few calls apart, for some calls end early on some ranks.
class CallHistory {
 public:
  static constexpr size_t kCalls = 8;

  void Begin(const CallLabel& label, absl::Time now) {
    last_ = (last_ + 1) % kCalls;
    calls_[last_] = label;
    begun_ = now;
    fingerprint_ = label.Fingerprint();
  }

  // All of the last one; of no call before the first.
  const CallLabel& last() const { return calls_[last_]; }
  uint32_t fingerprint() const { return fingerprint_; }
  absl::Time begun() const { return begun_; }

  // Oldest first, without those of number 0.
  std::vector<CallLabel> Calls() const;

 private:
  std::array<CallLabel, kCalls> calls_;
  size_t last_ = 0;
  uint32_t fingerprint_ = CallLabel().Fingerprint();
  absl::Time begun_ = absl::InfinitePast();
};

// What one rank says. Travels as these very bytes, for the ranks of a group run the same program; what comes from
// elsewhere is checked by IsValid. Texts are zero-terminated, and cut where they are too long.
struct Statement {
  enum class Kind : int32_t {
    kFailure,  // The collective failed on that rank: `code` and `message`.
    kHeard,    // That rank only heard of another's failure.
    kVerdict,  // What that rank, having heard the others, told its user. No calls.
  };
  struct Call {
    uint64_t number;
    uint32_t fingerprint;
    std::array<char, 124> text;
  };

  Kind kind;
  int32_t code;        // absl::StatusCode
  int64_t in_call_us;  // How long it had been in its last call.
  uint64_t calls;      // Used ones of `recent`, oldest first.
  std::array<Call, CallHistory::kCalls> recent;
  std::array<char, 1024> message;
};

// An ABORTED failure, as from ReportedBy, is one that was only heard of.
Statement FailureStatement(const CallHistory& history, const absl::Status& failure, absl::Time now);
Statement VerdictStatement(const absl::Status& verdict);
bool IsValid(const Statement& statement);

// What a wait returns on a rank that learns from `statement` that rank `from` failed. ABORTED.
absl::Status ReportedBy(int from, const Statement& statement);

class Settlement {
 public:
  explicit Settlement(int size) : statements_(size), left_(size, false) {}

  // The first statement of a rank counts, and the first verdict of any. One that is not valid is ignored.
  void Hear(int from, const Statement& statement);
  // That rank will say nothing any more.
  void HearLeft(int from) { left_[from] = true; }

  // Whether some rank failed; who it was, and what it said.
  bool any() const { return first_ >= 0; }
  absl::Status FirstReport() const { return any() ? ReportedBy(first_, *statements_[first_]) : absl::OkStatus(); }

  bool has_verdict() const { return verdict_.has_value(); }
  // Whether waiting longer is of no use: all ranks have spoken, or one knows the verdict.
  bool complete() const;
  // Whether it is this rank that says the verdict when all have spoken: the first of those that failed by themselves.
  // The others wait for it, so that all users are told the same.
  bool IsSpeaker(int rank) const;

  // The verdict heard, if any, else what the statements say together; at least one was heard. Not OK. Names the ranks
  // that diverge, are missing or failed. INVALID_ARGUMENT: they are in different calls. DEADLINE_EXCEEDED: some did not
  // come. UNAVAILABLE: some left. Else the code of the rank that failed.
  absl::Status Verdict() const;

 private:
  std::optional<absl::Status> Divergence() const;
  std::optional<absl::Status> Absence() const;
  absl::Status FirstFailure() const;

  std::vector<std::optional<Statement>> statements_;  // Of each rank.
  std::vector<bool> left_;
  std::optional<absl::Status> verdict_;
  int first_ = -1;
};

// "rank 0, 2, 5-8". Ascending.
std::string RankList(const std::vector<int>& ranks);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_TRANSPORT_SETTLEMENT_H_
