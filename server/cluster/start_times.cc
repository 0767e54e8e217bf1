#include "server/cluster/start_times.h"

#include <algorithm>

#include "job/visible_text.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

constexpr size_t kStartsMax = 4;
constexpr size_t kReasonBytesMax = 200;

v1::LifeSpan Span(v1::LifeSpan::What what, int64_t begin_us, int64_t end_us) {
  v1::LifeSpan span;
  span.set_what(what);
  span.set_begin_unix_us(std::max<int64_t>(begin_us, 0));
  span.set_duration_us(static_cast<uint64_t>(std::max<int64_t>(end_us - span.begin_unix_us(), 0)));
  return span;
}

bool Has(const v1::StartTimes& start, v1::LifeSpan::What what) {
  return std::any_of(start.spans().begin(), start.spans().end(),
                     [what](const v1::LifeSpan& span) { return span.what() == what; });
}

// Returns when the start was placed. The first spans of a start are QUEUED, if it is known, and STORED.
int64_t PlacedAt(const v1::StartTimes& start) {
  for (const v1::LifeSpan& span : start.spans()) {
    if (span.what() == v1::LifeSpan::STORED) return span.begin_unix_us();
  }
  return 0;
}

bool KeepsRules(const v1::RankBegun& begun) {
  if (begun.spans_size() > kBegunSpansMax) return false;
  uint64_t end_ago = kStatedUsMax;  // How long ago the previous span ended.
  return std::all_of(begun.spans().begin(), begun.spans().end(), [&end_ago](const v1::RankSpan& span) {
    const bool known = v1::LifeSpan::What_IsValid(span.what()) && span.what() >= v1::LifeSpan::LOADED;
    if (!known || span.ago_us() > end_ago || span.duration_us() > span.ago_us()) return false;
    end_ago = span.ago_us() - span.duration_us();
    return true;
  });
}

}  // namespace

void AddStart(const StartBegin& begin, std::vector<PackedStart>& starts) {
  v1::StartTimes start;
  start.set_group(begin.group);
  start.set_incarnation(begin.incarnation);
  start.set_worker(begin.worker);
  if (begin.waits_since_us > 0 && begin.waits_since_us < begin.placed_us) {
    *start.add_spans() = Span(v1::LifeSpan::QUEUED, begin.waits_since_us, begin.placed_us);
    start.set_waited_for(std::string(FirstBytes(begin.waited_for, kReasonBytesMax)));
  }
  // The span STORED ends when the worker says that it got the command.
  *start.add_spans() = Span(v1::LifeSpan::STORED, begin.placed_us, begin.placed_us);
  if (starts.size() >= kStartsMax) starts.erase(starts.begin() + 1);
  starts.emplace_back(start);
}

int64_t HappenedAt(int64_t said_us, int64_t now_us, const v1::StartTimes& start) {
  return said_us >= PlacedAt(start) && said_us <= now_us ? said_us : now_us;
}

void AddPrepared(const v1::GroupStarted& started, int64_t at_us, v1::StartTimes& start) {
  if (Has(start, v1::LifeSpan::PREPARED)) return;
  const int64_t placed_us = PlacedAt(start);
  const auto preparing = static_cast<int64_t>(std::min(started.preparing_us(), kStatedUsMax));
  const auto files = static_cast<int64_t>(std::min(started.files_us(), kStatedUsMax));
  const int64_t got_us = std::max(at_us - preparing, placed_us);
  for (v1::LifeSpan& span : *start.mutable_spans()) {
    if (span.what() == v1::LifeSpan::STORED) span = Span(v1::LifeSpan::STORED, placed_us, got_us);
  }
  *start.add_spans() = Span(v1::LifeSpan::PREPARED, got_us, at_us);
  // Before anything else, the worker fetches the job's files. So FILES begins with PREPARED.
  if (files > 0) *start.add_spans() = Span(v1::LifeSpan::FILES, got_us, std::min(got_us + files, at_us));
}

bool AddBegun(const v1::RankBegun& begun, int64_t at_us, v1::StartTimes& start) {
  if (Has(start, v1::LifeSpan::FIRST_STEP) || !KeepsRules(begun)) return false;
  for (const v1::RankSpan& span : begun.spans()) {
    const int64_t begin_us = std::max(at_us - static_cast<int64_t>(span.ago_us()), PlacedAt(start));
    const int64_t end_us = at_us - static_cast<int64_t>(span.ago_us() - span.duration_us());
    *start.add_spans() = Span(span.what(), begin_us, std::max(begin_us, end_us));
  }
  return true;
}

std::vector<v1::LifeSpan> SubmitSpans(int64_t submitted_us, uint64_t preparing_us, uint64_t upload_us) {
  std::vector<v1::LifeSpan> spans;
  if (preparing_us == 0 || preparing_us > kStatedUsMax) return spans;
  spans.push_back(Span(v1::LifeSpan::SUBMIT, submitted_us - static_cast<int64_t>(preparing_us), submitted_us));
  if (upload_us == 0 || upload_us > preparing_us) return spans;
  spans.push_back(Span(v1::LifeSpan::UPLOAD, submitted_us - static_cast<int64_t>(upload_us), submitted_us));
  return spans;
}

}  // namespace hooke
