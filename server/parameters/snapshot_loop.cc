#include "server/parameters/snapshot_loop.h"

#include <utility>

namespace hooke {

SnapshotLoop::SnapshotLoop(absl::Duration interval, std::function<absl::Status()> snapshot)
    : interval_(interval), snapshot_(std::move(snapshot)), thread_([this]() { Run(); }) {}

SnapshotLoop::~SnapshotLoop() { EndThread(); }

absl::Status SnapshotLoop::Stop() { return EndThread() ? snapshot_() : absl::OkStatus(); }

void SnapshotLoop::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), interval_)) return;
    }
    snapshot_().IgnoreError();
  }
}

bool SnapshotLoop::EndThread() {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    stopping_ = true;
  }
  thread_.join();
  return true;
}

}  // namespace hooke
