#include "server/parameters/snapshot_loop.h"

#include <utility>

namespace hooke {

SnapshotLoop::SnapshotLoop(absl::Duration interval, std::function<absl::Status()> snapshot,
                           std::shared_ptr<WaitClock> clock)
    : interval_(interval), snapshot_(std::move(snapshot)), clock_(std::move(clock)), thread_([this]() { Run(); }) {}

SnapshotLoop::~SnapshotLoop() { EndThread(); }

absl::Status SnapshotLoop::Stop() { return EndThread() ? snapshot_() : absl::OkStatus(); }

void SnapshotLoop::Run() {
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const absl::Time due = clock_->Now() + interval_;
      while (!stopping_ && clock_->Now() < due) clock_->Wait(stops_, mutex_, due);
      if (stopping_) return;
    }
    snapshot_().IgnoreError();
  }
}

bool SnapshotLoop::EndThread() {
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return false;
    stopping_ = true;
    stops_.SignalAll();
  }
  thread_.join();
  return true;
}

}  // namespace hooke
