#include "server/parameters/shard_loader.h"

#include <utility>

namespace hooke {

absl::StatusOr<std::unique_ptr<ShardLoader>> ShardLoader::Start(ParameterStore* store) {
  absl::StatusOr<std::unique_ptr<TaskThreads>> threads = TaskThreads::Start(kThreads);
  if (!threads.ok()) return threads.status();
  return std::unique_ptr<ShardLoader>(new ShardLoader(store, *std::move(threads)));
}

ShardLoader::~ShardLoader() { Stop(); }

void ShardLoader::Load(const std::string& job_id, std::function<void(absl::Status)> loaded) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::function<void(absl::Status)>>& waiting = waiting_[job_id];
  waiting.push_back(std::move(loaded));
  if (waiting.size() == 1) threads_->Post([this, job_id] { LoadJob(job_id); });
}

void ShardLoader::Stop() { threads_->Stop(); }

void ShardLoader::LoadJob(const std::string& job_id) {
  const absl::Status status = store_->Load(job_id);
  std::vector<std::function<void(absl::Status)>> waiting;
  {
    absl::MutexLock lock(&mutex_);
    waiting = std::move(waiting_[job_id]);
    waiting_.erase(job_id);
  }
  for (const std::function<void(absl::Status)>& loaded : waiting) loaded(status);
}

}  // namespace hooke
