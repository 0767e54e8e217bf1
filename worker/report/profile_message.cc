#include "worker/report/profile_message.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hooke {
namespace {

constexpr size_t kEventsShare = 3;  // Events take at most 1/3 of the bytes.
constexpr size_t kFieldBytes = 4;   // Most bytes for the tag and the length of a message in a list.

v1::Operation MessageOf(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return v1::ALL_REDUCE;
    case Operation::kReduce:
      return v1::REDUCE;
    case Operation::kBroadcast:
      return v1::BROADCAST;
    case Operation::kReduceScatter:
      return v1::REDUCE_SCATTER;
    case Operation::kAllGather:
      return v1::ALL_GATHER;
    case Operation::kBarrier:
      return v1::BARRIER;
  }
  return v1::OPERATION_UNSPECIFIED;
}

v1::CollectiveProfile MessageOf(const CollectiveStatistics& some) {
  v1::CollectiveProfile message;
  message.set_operation(MessageOf(some.kind.operation));
  message.set_fused(some.kind.fused);
  message.set_bytes_min(some.kind.bytes_min);
  message.set_bytes_max(some.kind.bytes_max);
  message.set_algorithm(some.algorithm.substr(0, 64));
  message.set_bytes(some.bytes);
  message.set_time_ns(some.time_ns);
  message.set_step_ns(some.step_ns);
  message.set_min_ns(some.min_ns);
  message.set_max_ns(some.max_ns);
  for (const CollectiveStatistics::Bucket& bucket : some.buckets) {
    message.add_bucket_begin_ns(bucket.begin_ns);
    message.add_bucket_end_ns(bucket.end_ns);
    message.add_bucket_calls(bucket.calls);
  }
  return message;
}

v1::TraceEvent MessageOf(const ProfileEvent& event) {
  v1::TraceEvent message;
  message.set_begin_ns(static_cast<uint64_t>(event.begin_ns));
  message.set_duration_ns(static_cast<uint64_t>(event.end_ns - event.begin_ns));
  message.set_track(event.track);
  if (event.track == 0) {
    message.set_phase(static_cast<v1::RankProgress::Phase>(event.phase));
    message.set_step(event.step);
  } else {
    message.set_operation(MessageOf(event.operation));
    message.set_bytes(event.bytes);
    message.set_fused(event.fused);
    message.set_call(event.call);
  }
  return message;
}

// Adds the newest events that fit into `bytes_max`. `events` are in the order of their begin.
void AddEvents(const std::vector<ProfileEvent>& events, size_t bytes_max, v1::RankProfile& message) {
  std::vector<v1::TraceEvent> newest;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    newest.push_back(MessageOf(*event));
    const size_t bytes = newest.back().ByteSizeLong() + kFieldBytes;
    if (bytes > bytes_max) {
      newest.pop_back();
      break;
    }
    bytes_max -= bytes;
  }
  for (auto event = newest.rbegin(); event != newest.rend(); ++event) *message.add_events() = *event;
}

}  // namespace

v1::RankProfile ToMessage(const Profile& profile, const ProfileMessageBounds& bounds) {
  v1::RankProfile message;
  message.set_step_ns(profile.step_ns);
  AddEvents(profile.events, bounds.bytes_max / kEventsShare, message);
  std::vector<const CollectiveStatistics*> longest;
  for (const CollectiveStatistics& some : profile.collectives) longest.push_back(&some);
  std::stable_sort(longest.begin(), longest.end(), [](const CollectiveStatistics* a, const CollectiveStatistics* b) {
    return a->time_ns > b->time_ns;
  });
  uint64_t left_out = profile.calls_left_out;
  size_t bytes = message.ByteSizeLong() + 16;
  for (const CollectiveStatistics* some : longest) {
    v1::CollectiveProfile one = MessageOf(*some);
    const size_t more = one.ByteSizeLong() + kFieldBytes;
    if (bytes + more > bounds.bytes_max || static_cast<size_t>(message.collectives_size()) >= bounds.collectives_max) {
      left_out += some->calls;
      continue;
    }
    bytes += more;
    *message.add_collectives() = std::move(one);
  }
  message.set_calls_left_out(left_out);
  return message;
}

}  // namespace hooke
