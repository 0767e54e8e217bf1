#include "server/parameters/task_threads.h"

#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {

absl::StatusOr<std::unique_ptr<TaskThreads>> TaskThreads::Start(size_t threads) {
  std::unique_ptr<TaskThreads> started(new TaskThreads());
  try {
    while (started->threads_.size() < threads) {
      started->threads_.emplace_back([started = started.get()] { started->Run(); });
    }
  } catch (const std::system_error& error) {
    if (!started->threads_.empty()) return started;
    return absl::UnavailableError(absl::StrCat("this server's process can have no more threads (", error.what(),
                                               "); raise its limit (ulimit -u, TasksMax)"));
  }
  return started;
}

TaskThreads::~TaskThreads() { Stop(); }

void TaskThreads::Post(std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back(std::move(task));
}

void TaskThreads::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void TaskThreads::Run() {
  while (true) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &TaskThreads::HasWork));
      if (stopped_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace hooke
