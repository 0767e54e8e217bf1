#ifndef HOOKE_WORKER_REPORT_START_SPANS_H_
#define HOOKE_WORKER_REPORT_START_SPANS_H_

// Notes what a rank does from the start of its process to the end of its first step, one after another. Pure: the
// caller passes the time. Not thread-safe; the reporter guards it.

#include <vector>

#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace hooke {

class StartSpans {
 public:
  // Begins a span, and ends the span before it. If that is of the same kind, it just goes on. After FIRST_STEP has
  // begun, Begin does nothing.
  void Begin(v1::LifeSpan::What what, absl::Time now);
  // Begins the span that this phase stands for, if it stands for one.
  void Enter(v1::RankProgress::Phase phase, absl::Time now);
  // Ends the first step and returns the report. It leaves out a PROGRAM of less than 1 ms.
  v1::RankBegun End(absl::Time now) const;

 private:
  struct Span {
    v1::LifeSpan::What what;
    absl::Time begin;
  };
  std::vector<Span> spans_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_REPORT_START_SPANS_H_
