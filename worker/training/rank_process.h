#ifndef HOOKE_WORKER_TRAINING_RANK_PROCESS_H_
#define HOOKE_WORKER_TRAINING_RANK_PROCESS_H_

// The process of a rank: MPI, the group, and the reports to the worker that started it. One per process. hooke-rank and
// libhooke begin and end with it.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpi_group/group.h"
#include "mpi_group/mpi/mpi_session.h"
#include "mpi_group/profile/profile.h"
#include "proto/worker.pb.h"
#include "worker/report/event_sink.h"
#include "worker/report/reporter.h"
#include "worker/report/start_spans.h"

namespace hooke {

// Reads a binary GroupStart and fills in the defaults of its job (FillDefaults). NOT_FOUND: the file cannot be read.
// INVALID_ARGUMENT: it is no binary GroupStart.
absl::StatusOr<v1::GroupStart> ReadStartFile(const std::string& path);
// The same for a GroupStart in JSON. NOT_FOUND: the file cannot be read. INVALID_ARGUMENT: it is no GroupStart in JSON.
absl::StatusOr<v1::GroupStart> ReadStartJson(const std::string& path);

// Makes the kernel kill this process when its parent process ends, because nobody else would end it. False: the parent
// has ended already.
bool EndWithLauncher();

struct RankProcessOptions {
  std::string program;  // The program's name in messages on the standard error.
  // Whether to start MPI. Without MPI, this process is the whole group.
  bool mpi = true;
  // Receivers of the reports besides the worker. They are used on rank 0 only.
  std::function<std::vector<std::unique_ptr<EventSink>>()> more_sinks;
  // Without a worker, rank 0 logs its progress on the standard error. If `quiet`, it logs only warnings, for example
  // notices.
  bool quiet = false;
};

class RankProcess {
 public:
  // Joins MPI and the group of all its ranks, and says hello to the worker, if `start` names one. Collective. An error
  // was reported to the worker already, if that was possible. After an error the process ends by EndWithoutRank.
  static absl::StatusOr<std::unique_ptr<RankProcess>> Start(const v1::GroupStart& start, RankProcessOptions options);
  ~RankProcess();

  const v1::GroupStart& start() const { return start_; }
  Group& group() { return *group_; }
  Reporter& reporter() { return *reporter_; }

  // Leaves the group after the rank has done its task. Collective. OK: MPI has ended. After an error the process ends
  // by EndWithoutRank.
  absl::Status Finish(uint64_t steps);

  // Tells the worker, if there is one, that this rank failed. The process is then to end by EndWithoutRank.
  void ReportFailure(const absl::Status& why);
  // Reports the failure and ends the process by EndWithoutRank.
  [[noreturn]] void GiveUp(const absl::Status& why);

 private:
  RankProcess(const v1::GroupStart& start, RankProcessOptions options) : start_(start), options_(std::move(options)) {}

  // Sets `start_spans_` to what the process has done so far.
  void NoteStart();
  absl::Status Join();
  absl::StatusOr<std::unique_ptr<Group>> MakeGroup();
  std::unique_ptr<Reporter> MakeReporter();
  int rank() const { return session_ == nullptr ? 0 : session_->rank(); }
  int size() const { return session_ == nullptr ? 1 : session_->size(); }

  const v1::GroupStart start_;
  const RankProcessOptions options_;
  std::shared_ptr<spdlog::logger> logger_;
  std::unique_ptr<MpiSession> session_;  // Null without MPI.
  StartSpans start_spans_;
  std::shared_ptr<ProfileRecorder> profile_;
  std::unique_ptr<Reporter> reporter_;
  std::unique_ptr<Group> group_;
};

// Prints the error as a message of `program` and ends the process with `exit_status`. Runs no exit handlers, because
// MPI's handlers would wait for the other ranks. If `rank` is -1, it is not known.
[[noreturn]] void EndWithoutRank(const std::string& program, int rank, const absl::Status& why, int exit_status = 1);

}  // namespace hooke

#endif  // HOOKE_WORKER_TRAINING_RANK_PROCESS_H_
