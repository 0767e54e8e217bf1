#include "worker/report/start_spans.h"

#include <algorithm>
#include <cstdint>

#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr uint64_t kProgramUsMin = 1000;

uint64_t Microseconds(absl::Duration time) {
  return static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Microseconds(time), 0));
}

}  // namespace

void StartSpans::Begin(v1::LifeSpan::What what, absl::Time now) {
  if (!spans_.empty()) {
    if (spans_.back().what == what || spans_.back().what == v1::LifeSpan::FIRST_STEP) return;
    // A clock that was set back must not make spans overlap.
    now = std::max(now, spans_.back().begin);
  }
  // A report has a limit of spans. Only a program that repeats itself reaches it. One place is kept for the first step.
  if (spans_.size() + 1 >= static_cast<size_t>(kBegunSpansMax) && what != v1::LifeSpan::FIRST_STEP) return;
  spans_.push_back({what, now});
}

void StartSpans::Enter(v1::RankProgress::Phase phase, absl::Time now) {
  switch (phase) {
    case v1::RankProgress::STARTING:
      return Begin(v1::LifeSpan::PROGRAM, now);
    case v1::RankProgress::ATTACHING:
      return Begin(v1::LifeSpan::ATTACHED, now);
    case v1::RankProgress::COMPUTE:
    case v1::RankProgress::COLLECTIVE:
    case v1::RankProgress::EXCHANGE:
      return Begin(v1::LifeSpan::FIRST_STEP, now);
    default:
      return;
  }
}

v1::RankBegun StartSpans::End(absl::Time now) const {
  v1::RankBegun begun;
  for (size_t i = 0; i < spans_.size(); ++i) {
    const uint64_t ago = Microseconds(now - spans_[i].begin);
    const uint64_t end_ago = i + 1 < spans_.size() ? Microseconds(now - spans_[i + 1].begin) : 0;
    const uint64_t duration = ago - std::min(end_ago, ago);
    // PROGRAM is work of the program of which Hooke knows nothing. The built-in trainer has none, so a very short span
    // is left out.
    if (spans_[i].what == v1::LifeSpan::PROGRAM && duration < kProgramUsMin) continue;
    v1::RankSpan* span = begun.add_spans();
    span->set_what(spans_[i].what);
    span->set_ago_us(ago);
    span->set_duration_us(duration);
  }
  return begun;
}

}  // namespace hooke
