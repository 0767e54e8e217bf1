#ifndef HOOKE_WORKER_EXCHANGE_IN_MEMORY_SERVER_H_
#define HOOKE_WORKER_EXCHANGE_IN_MEMORY_SERVER_H_

// A parameter server without a network, for tests. It holds one shard of one job and keeps the contract of
// proto/parameter_server.proto, also for later generations of the job. Tests can switch faults on. Thread-safe. The
// server outlives what Dial returns.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "algorithms/center_rule.h"
#include "worker/exchange/server_calls.h"

namespace hooke {

class InMemoryServer {
 public:
  explicit InMemoryServer(std::string address) : address_(std::move(address)) {}

  std::unique_ptr<ServerCalls> Dial();

  // False: calls fail with UNAVAILABLE, open streams break.
  void SetReachable(bool reachable);
  // False: exchanges and Locate calls get no answer, as from a stopped process. Messages written meanwhile wait in a
  // queue.
  void SetAnswering(bool answering);
  // True: exchanges get no answers, but Locate calls do, as from a server that waits for other groups.
  void SetWaitingForGroups(bool waiting);
  // The next `times` Locate calls fail.
  void FailQuestions(int times);
  // True: blocks are applied, but neither exchanges nor Locate calls get an answer.
  void SetLosingAnswers(bool losing);
  // The stream breaks after `messages` more messages were applied. The answer to the last of them is lost.
  void BreakAfterApplying(int messages);
  // From now on exchanges end with this error; OK: they succeed again.
  void SetError(absl::Status error);
  // Restarts the server with an empty disk, so it no longer knows the job.
  void Forget();
  // Restarts the server from its disk: it goes back to when it was last initialized or saved.
  void Restart();
  // Restarts the server right before the next Save.
  void RestartBeforeSave();
  // From now on saving ends with this error; OK: it succeeds again.
  void SetSaveError(absl::Status error);
  // Keeping states ends with this error from now on; OK: no more.
  void SetKeepError(absl::Status error);
  // From now on FetchState returns this error; OK: it succeeds again.
  void SetFetchError(absl::Status error);
  // The next `times` calls that keep a state fail with UNAVAILABLE.
  void FailKeeps(int times);
  // Damages all states that the server keeps.
  void DamageStates();
  // The next `times` Attach calls are answered WAIT.
  void MakeWait(int times);

  std::vector<float> center() const;  // The shard's values; empty before it was initialized.
  int applied() const;                // How often the rule was applied to a block.
  int repeated() const;               // How often a block's earlier answer was sent again.
  std::set<uint32_t> ended() const;   // The groups that have said that they have ended.
  int streams() const;                // Streams opened so far.
  v1::JobSpecForShard job() const;    // The job as the first group of the present generation sent it.
  v1::Layout layout() const;          // The layout as that group sent it.

 private:
  friend class InMemoryCalls;
  friend class InMemoryStream;

  struct Answered {
    uint32_t incarnation = 0;
    uint64_t sequence = 0;
    std::vector<float> answer;
  };
  using Applied = std::map<std::pair<uint32_t, uint64_t>, Answered>;  // Keyed by group and block.

  using StateKey = std::tuple<uint32_t, uint32_t, uint32_t, uint64_t>;  // Group, rank, incarnation and step.

  absl::StatusOr<v1::AttachResponse> Attach(const v1::AttachRequest& request);
  absl::Status Initialize(const InitialValues& values);
  absl::Status Pull(const std::function<absl::Status(const v1::PullResponse&)>& sink);
  absl::StatusOr<v1::PaceResponse> Pace(const v1::PaceRequest& request);
  absl::Status Save(const v1::SaveRequest& request);
  absl::Status KeepState(const StateToKeep& state);
  absl::StatusOr<FetchedState> FetchState(const v1::FetchStateRequest& request);
  absl::StatusOr<v1::LocateResponse> Locate(const v1::Sender& sender, absl::Time deadline);
  bool AnswersLocate() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return !reachable_ || (answering_ && !losing_); }
  void LoadDisk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status BeginGeneration(const v1::AttachRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ABORTED: the sender's generation is over, or a later start of its group has attached.
  absl::Status CheckSender(const v1::Sender& sender) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<AnsweredBlocks> Apply(const v1::Sender& sender, const AnsweredBlocks& sent)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string address_;
  mutable absl::Mutex mutex_;
  bool reachable_ ABSL_GUARDED_BY(mutex_) = true;
  bool answering_ ABSL_GUARDED_BY(mutex_) = true;
  bool waiting_ ABSL_GUARDED_BY(mutex_) = false;
  int failing_questions_ ABSL_GUARDED_BY(mutex_) = 0;
  bool losing_ ABSL_GUARDED_BY(mutex_) = false;
  int break_after_ ABSL_GUARDED_BY(mutex_) = -1;  // Messages to apply before the stream breaks; -1: it does not break.
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
  int waits_ ABSL_GUARDED_BY(mutex_) = 0;
  v1::AttachRequest job_ ABSL_GUARDED_BY(mutex_);
  Range shard_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<CenterRule> rule_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> center_ ABSL_GUARDED_BY(mutex_);
  Applied answered_ ABSL_GUARDED_BY(mutex_);
  std::vector<float> disk_center_ ABSL_GUARDED_BY(mutex_);
  Applied disk_answered_ ABSL_GUARDED_BY(mutex_);
  Applied loaded_ ABSL_GUARDED_BY(mutex_);    // The answers that the last restart loaded.
  int restarts_ ABSL_GUARDED_BY(mutex_) = 0;  // How often the server restarted from its disk.
  bool restart_before_save_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status save_error_ ABSL_GUARDED_BY(mutex_);
  absl::Status keep_error_ ABSL_GUARDED_BY(mutex_);
  absl::Status fetch_error_ ABSL_GUARDED_BY(mutex_);
  int failing_keeps_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<StateKey, std::string> states_ ABSL_GUARDED_BY(mutex_);
  bool states_damaged_ ABSL_GUARDED_BY(mutex_) = false;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;  // A group has said that the job is to stop.
  std::set<uint32_t> ended_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, double> paces_ ABSL_GUARDED_BY(mutex_);           // The last pace of each group.
  std::map<uint32_t, uint32_t> incarnations_ ABSL_GUARDED_BY(mutex_);  // The highest incarnation seen of each group.
  // Streams that were opened before this number last changed are broken. It is not the generation of the job.
  int generation_ ABSL_GUARDED_BY(mutex_) = 0;
  int applied_ ABSL_GUARDED_BY(mutex_) = 0;
  int repeated_ ABSL_GUARDED_BY(mutex_) = 0;
  int streams_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns two servers with the addresses "first:1" and "second:2".
std::vector<std::unique_ptr<InMemoryServer>> TwoInMemoryServers();

}  // namespace hooke

#endif  // HOOKE_WORKER_EXCHANGE_IN_MEMORY_SERVER_H_
