#include "tests/benchmarks/coordinator/simulated_ranks.h"

#include <algorithm>

namespace hooke {
namespace {

constexpr int kStepsPerSecond = 20;
constexpr int kEvents = 1024;  // ProfileOptions::events_max (mpi_group/profile/profile.h).
constexpr int kSizes = 8;      // Different sizes of the collectives' vectors.
constexpr int kBuckets = 24;   // Buckets of each size's histogram that have calls.

v1::RankProgress ProgressAt(uint64_t step, absl::Duration since_start) {
  const double seconds = absl::ToDoubleSeconds(since_start);
  v1::RankProgress progress;
  progress.set_step(step);
  progress.set_steps_total(1000000);
  progress.set_epoch(static_cast<double>(step) / 1000);
  progress.set_loss(0.5 + 1 / (1 + seconds));
  progress.set_samples_per_s(1280 + static_cast<double>(step % 7));
  progress.set_phase(v1::RankProgress::COMPUTE);
  progress.set_phase_seconds(0.013);
  progress.set_compute_seconds(0.8 * seconds);
  progress.set_collective_seconds(0.15 * seconds);
  progress.set_exchange_seconds(0.05 * seconds);
  progress.set_exchanges(step / 16);
  progress.set_overlapped_seconds(0.1 * seconds);
  progress.set_exchanged_step(step / 16 * 16);
  progress.set_center_distance(0.01 + 0.0001 * static_cast<double>(step % 7));
  return progress;
}

void AddCollective(int size, v1::RankProfile& profile) {
  v1::CollectiveProfile* some = profile.add_collectives();
  const uint64_t bytes = uint64_t{1000} << size;
  some->set_operation(v1::ALL_REDUCE);
  some->set_bytes_min(bytes);
  some->set_bytes_max(bytes);
  some->set_algorithm("shared memory");
  some->set_bytes(bytes * 20000);
  some->set_time_ns(3000000000);
  some->set_step_ns(3000000000);
  some->set_min_ns(40000);
  some->set_max_ns(9000000);
  for (uint64_t i = 0; i < kBuckets; ++i) {
    some->add_bucket_begin_ns(40000 + i * 5000);
    some->add_bucket_end_ns(45000 + i * 5000);
    some->add_bucket_calls(800 + i);
  }
}

// A step is eight collectives on a track of their own, beside the step's phase.
void AddEvent(int i, v1::RankProfile& profile) {
  v1::TraceEvent* event = profile.add_events();
  event->set_begin_ns(uint64_t{900000000000000} + static_cast<uint64_t>(i) * 5000000);
  event->set_duration_ns(4000000 + static_cast<uint64_t>(i % 100) * 1000);
  if (i % (kSizes + 1) == 0) {
    event->set_phase(v1::RankProgress::COMPUTE);
    event->set_step(1000 + static_cast<uint64_t>(i));
    return;
  }
  event->set_track(1);
  event->set_operation(v1::ALL_REDUCE);
  event->set_bytes(uint64_t{1000} << (i % kSizes));
}

v1::GroupEvent ReportOf(uint32_t rank) {
  v1::GroupEvent event;
  event.mutable_report()->set_rank(rank);
  return event;
}

// Advances `next` past `now` if it is due. The times stay multiples of the interval, however late the caller is.
bool TakeDue(absl::Time now, absl::Duration every, absl::Time& next, Sent& sent) {
  if (now < next) return false;
  sent.late_ms_max = std::max(sent.late_ms_max, absl::ToDoubleMilliseconds(now - next));
  while (next <= now) next += every;
  return true;
}

}  // namespace

void Sent::Add(const Sent& other) {
  rank_reports += other.rank_reports;
  progress += other.progress;
  profiles += other.profiles;
  heartbeats += other.heartbeats;
  writes += other.writes;
  late_ms_max = std::max(late_ms_max, other.late_ms_max);
}

v1::RankProfile ExampleProfile() {
  v1::RankProfile profile;
  profile.set_step_ns(60000000000);
  for (int size = 0; size < kSizes; ++size) AddCollective(size, profile);
  for (int i = 0; i < kEvents; ++i) AddEvent(i, profile);
  profile.set_machine("5f1ad7a6-0f6f-4a5e-9d5c-0b8f3f6f4f0e 4026531834");
  profile.mutable_clock()->set_offset_ns(1600000000000000000);
  profile.mutable_clock()->set_error_ns(120000);
  return profile;
}

SimulatedRanks::SimulatedRanks(uint32_t ranks, absl::Time start, double shift) : start_(start) {
  ranks_.assign(ranks, {start + kProgressEvery, start + shift * kProfileEvery});
}

std::vector<v1::GroupEvent> SimulatedRanks::FirstEvents(uint32_t ranks) {
  std::vector<v1::GroupEvent> events(1);
  events[0].mutable_started()->set_launcher_pid(1000);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    v1::RankHello* hello = events.emplace_back(ReportOf(rank)).mutable_report()->mutable_event()->mutable_hello();
    hello->set_rank(rank);
    hello->set_ranks(ranks);
    hello->set_pid(1001 + rank);
  }
  return events;
}

std::vector<v1::GroupEvent> SimulatedRanks::Due(absl::Time now, Sent& sent) {
  static const v1::RankProfile* const kProfile = new v1::RankProfile(ExampleProfile());
  std::vector<v1::GroupEvent> events;
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (TakeDue(now, kProgressEvery, ranks_[rank].next_progress, sent)) {
      ++sent.rank_reports;
      const auto step = static_cast<uint64_t>(absl::ToDoubleSeconds(now - start_) * kStepsPerSecond);
      const v1::RankProgress progress = ProgressAt(step, now - start_);
      if (filter_.MustPass(rank, progress)) {
        ++sent.progress;
        *events.emplace_back(ReportOf(rank)).mutable_report()->mutable_event()->mutable_progress() = progress;
        if (rank == 0) step_ = step;
      }
    }
    if (TakeDue(now, kProfileEvery, ranks_[rank].next_profile, sent)) {
      ++sent.profiles;
      *events.emplace_back(ReportOf(rank)).mutable_report()->mutable_event()->mutable_profile() = *kProfile;
    }
  }
  return events;
}

}  // namespace hooke
