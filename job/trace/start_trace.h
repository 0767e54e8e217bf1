#ifndef HOOKE_JOB_TRACE_START_TRACE_H_
#define HOOKE_JOB_TRACE_START_TRACE_H_

// The way of a job from `hooke submit` to the first step of each group, as spans of a trace. The processes on the way
// are the client, the coordinator, the workers and rank 0 of each group. Pure. Values from peers are not trusted.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/coordinator.pb.h"

namespace hooke {

// The process of a rank in a trace.
uint64_t TraceProcessOf(uint32_t group, uint32_t rank);

// A process of the trace, or one of its tracks.
struct StartTrack {
  uint64_t process = 0;
  uint32_t track = 0;
  int64_t sort_index = 0;  // Where the viewer puts the process among the others.
  std::string process_name;
  std::string name;
};

// Spans of one track are nested or apart.
struct StartSlice {
  uint64_t process = 0;
  uint32_t track = 0;
  std::string name;
  int64_t begin_ns = 0;  // Since 1970-01-01 UTC by the coordinator's clock.
  uint64_t duration_ns = 0;
  // Names and values that the viewer shows with the slice.
  std::vector<std::pair<std::string, std::string>> arguments = {};
  // Arrows of the trace: slices with the same number, in order of begin, are joined. 0: none.
  uint64_t arrow = 0;
};

struct StartTrace {
  std::vector<StartTrack> tracks;
  std::vector<StartSlice> slices;  // In each track in order of begin; a span comes before those inside it.
  uint32_t starts = 0;
};

StartTrace TraceStarts(const v1::ReadStartsResponse& starts);

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_START_TRACE_H_
