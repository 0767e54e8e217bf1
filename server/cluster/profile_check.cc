#include "server/cluster/profile_check.h"

#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace hooke {
namespace {

constexpr size_t kBytesMax = 257 << 10;  // The rank's 256 KiB, and room for the clock that its worker adds.
constexpr int kCollectivesMax = 1024;
constexpr int kBucketsMax = 1024;
constexpr int kEventsMax = 2048;
constexpr uint32_t kTrackMax = 64;
constexpr size_t kMachineBytesMax = 128;
constexpr size_t kAlgorithmBytesMax = 64;

absl::Status Bad(absl::string_view field, absl::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat("profile: ", field, " is out of range; allowed: ", allowed));
}

absl::Status CheckCollective(const v1::CollectiveProfile& some) {
  if (!v1::Operation_IsValid(some.operation()) || some.operation() == v1::OPERATION_UNSPECIFIED) {
    return Bad("operation", "ALL_REDUCE to BARRIER");
  }
  if (some.bytes_min() > some.bytes_max()) return Bad("bytes_min", "at most bytes_max");
  if (some.algorithm().size() > kAlgorithmBytesMax) return Bad("algorithm", "64 bytes");
  const int buckets = some.bucket_calls_size();
  if (buckets > kBucketsMax || some.bucket_begin_ns_size() != buckets || some.bucket_end_ns_size() != buckets) {
    return Bad("bucket_calls", "at most 1024, as many as bucket_begin_ns and bucket_end_ns");
  }
  uint64_t calls = 0;
  uint64_t end = 0;
  for (int i = 0; i < buckets; ++i) {
    if (some.bucket_begin_ns(i) < end || some.bucket_end_ns(i) <= some.bucket_begin_ns(i)) {
      return Bad("bucket_begin_ns", "ascending, not below the end before");
    }
    end = some.bucket_end_ns(i);
    if (some.bucket_calls(i) > std::numeric_limits<uint64_t>::max() - calls)
      return Bad("bucket_calls", "a sum below 2^64");
    calls += some.bucket_calls(i);
  }
  return absl::OkStatus();
}

absl::Status CheckEvent(const v1::TraceEvent& event) {
  if (event.track() > kTrackMax) return Bad("track", "0 to 64");
  if (event.begin_ns() > std::numeric_limits<int64_t>::max() ||
      event.duration_ns() > std::numeric_limits<int64_t>::max() - event.begin_ns()) {
    return Bad("begin_ns", "times below 2^63");
  }
  const bool valid = event.track() == 0
                         ? v1::RankProgress::Phase_IsValid(event.phase())
                         : v1::Operation_IsValid(event.operation()) && event.operation() != v1::OPERATION_UNSPECIFIED;
  return valid ? absl::OkStatus() : Bad("phase or operation", "one of those in proto/worker.proto");
}

}  // namespace

absl::Status CheckProfile(const v1::RankProfile& profile) {
  if (profile.ByteSizeLong() > kBytesMax) return Bad("size", "256 KiB");
  if (profile.collectives_size() > kCollectivesMax) return Bad("collectives", "at most 1024");
  if (profile.events_size() > kEventsMax) return Bad("events", "at most 2048");
  if (profile.machine().size() > kMachineBytesMax) return Bad("machine", "128 bytes");
  if (profile.clock().error_ns() < 0) return Bad("clock.error_ns", "at least 0");
  for (const v1::CollectiveProfile& some : profile.collectives()) {
    if (absl::Status status = CheckCollective(some); !status.ok()) return status;
  }
  for (const v1::TraceEvent& event : profile.events()) {
    if (absl::Status status = CheckEvent(event); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace hooke
