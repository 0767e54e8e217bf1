#ifndef HOOKE_SERVER_PARAMETERS_SHARD_LOADER_H_
#define HOOKE_SERVER_PARAMETERS_SHARD_LOADER_H_

// Loads shards from disk for connections that have no thread to wait with. A job occupies one thread, however many of
// its connections wait.

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/parameters/parameter_store.h"
#include "server/parameters/task_threads.h"

namespace hooke {

// Thread-safe.
class ShardLoader {
 public:
  // Shards that are loaded at the same time. A disk serves more of them no faster.
  static constexpr size_t kThreads = 2;

  // `store` outlives the loader. UNAVAILABLE: there can be no thread.
  static absl::StatusOr<std::unique_ptr<ShardLoader>> Start(ParameterStore* store);
  // Calls Stop.
  ~ShardLoader();

  // Has ParameterStore::Load called for the job. `loaded` gets its status, on a thread of this object. It must not
  // wait.
  void Load(const std::string& job_id, std::function<void(absl::Status)> loaded);
  // Waits for the loads that have begun. No `loaded` is called afterwards.
  void Stop();

 private:
  ShardLoader(ParameterStore* store, std::unique_ptr<TaskThreads> threads)
      : store_(store), threads_(std::move(threads)) {}

  void LoadJob(const std::string& job_id);

  ParameterStore* const store_;
  absl::Mutex mutex_;
  // Who waits for each job that is being loaded, or will be.
  std::map<std::string, std::vector<std::function<void(absl::Status)>>> waiting_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<TaskThreads> threads_;  // Last, because its threads use the others.
};

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_SHARD_LOADER_H_
