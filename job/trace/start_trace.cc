#include "job/trace/start_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "job/job_keys.h"

namespace hooke {
namespace {

// Process numbers in the trace. They are above those of all ranks (TraceProcessOf).
constexpr uint64_t kClient = uint64_t{1} << 30;
constexpr uint64_t kCoordinator = kClient + 1;
constexpr uint64_t kFirstWorker = kClient + 2;
// A rank's track for its start. The number is above those of its phases and collectives.
constexpr uint32_t kStartTrack = 1000;
constexpr int64_t kUsMax = std::numeric_limits<int64_t>::max() / 4000;

const char* NameOf(v1::LifeSpan::What what) {
  switch (what) {
    case v1::LifeSpan::SUBMIT:
      return "submit";
    case v1::LifeSpan::UPLOAD:
      return "upload files";
    case v1::LifeSpan::QUEUED:
      return "queued";
    case v1::LifeSpan::STORED:
      return "store and send";
    case v1::LifeSpan::PREPARED:
      return "prepare";
    case v1::LifeSpan::FILES:
      return "fetch files";
    case v1::LifeSpan::LOADED:
      return "load program";
    case v1::LifeSpan::JOINED:
      return "join ranks";
    case v1::LifeSpan::DATA:
      return "read data";
    case v1::LifeSpan::MODEL:
      return "make model";
    case v1::LifeSpan::PROGRAM:
      return "program";
    case v1::LifeSpan::ATTACHED:
      return "attach to servers";
    case v1::LifeSpan::FIRST_STEP:
      return "first step";
    default:
      return nullptr;  // From a newer coordinator.
  }
}

bool IsOfRank(v1::LifeSpan::What what) { return what >= v1::LifeSpan::LOADED; }
bool IsOfWorker(v1::LifeSpan::What what) { return what == v1::LifeSpan::PREPARED || what == v1::LifeSpan::FILES; }

// Whether a trace can show the span: its times are in range, and its name is known.
bool CanShow(const v1::LifeSpan& span) {
  return NameOf(span.what()) != nullptr && span.begin_unix_us() >= 0 && span.begin_unix_us() <= kUsMax &&
         span.duration_us() <= static_cast<uint64_t>(kUsMax);
}

int64_t EndOf(const v1::LifeSpan& span) { return span.begin_unix_us() + static_cast<int64_t>(span.duration_us()); }

struct Place {
  uint64_t process = 0;
  uint32_t track = 0;
};

StartSlice SliceOf(const Place& place, std::string name, int64_t begin_us, int64_t end_us) {
  StartSlice slice;
  slice.process = place.process;
  slice.track = place.track;
  slice.name = std::move(name);
  slice.begin_ns = begin_us * 1000;
  slice.duration_ns = static_cast<uint64_t>(std::max<int64_t>(end_us - begin_us, 0)) * 1000;
  return slice;
}

// Adds one start to the trace.
class OneStart {
 public:
  OneStart(const v1::StartTimes& start, uint64_t worker, uint64_t arrow, StartTrace& trace)
      : start_(start),
        coordinator_{kCoordinator, start.group()},
        worker_{worker, start.group()},
        rank_{TraceProcessOf(start.group(), 0), kStartTrack},
        arrow_(arrow),
        trace_(trace) {}

  void Add() {
    std::optional<int64_t> begin, end, prepared, loaded;
    for (const v1::LifeSpan& span : start_.spans()) {
      if (!CanShow(span)) continue;
      begin = std::min(begin.value_or(span.begin_unix_us()), span.begin_unix_us());
      end = std::max(end.value_or(EndOf(span)), EndOf(span));
      if (span.what() == v1::LifeSpan::PREPARED) prepared = EndOf(span);
      if (IsOfRank(span.what()) && !loaded.has_value()) loaded = span.begin_unix_us();
    }
    if (!begin.has_value()) return;
    ++trace_.starts;
    StartSlice whole =
        SliceOf(coordinator_, absl::StrCat("group ", start_.group(), ", start ", start_.incarnation()), *begin, *end);
    whole.arguments = {{"worker", start_.worker()}};
    whole.arrow = arrow_;
    trace_.slices.push_back(std::move(whole));
    for (const v1::LifeSpan& span : start_.spans()) {
      if (CanShow(span)) AddSpan(span, loaded);
    }
    // The launcher reports nothing. Its time is the one between the worker's last span and the rank's first.
    if (prepared.has_value() && loaded.has_value() && *loaded > *prepared) {
      trace_.slices.push_back(SliceOf(worker_, "launch ranks", *prepared, *loaded));
    }
  }

 private:
  void AddSpan(const v1::LifeSpan& span, std::optional<int64_t> loaded) {
    const bool of_rank = IsOfRank(span.what());
    const Place& place = of_rank ? rank_ : IsOfWorker(span.what()) ? worker_ : coordinator_;
    StartSlice slice = SliceOf(place, NameOf(span.what()), span.begin_unix_us(), EndOf(span));
    slice.arguments = {{"start", absl::StrCat(start_.incarnation())}};
    if (span.what() == v1::LifeSpan::QUEUED) slice.arguments.emplace_back("waited_for", start_.waited_for());
    const bool first_of_rank = of_rank && span.begin_unix_us() == loaded && !std::exchange(rank_has_arrow_, true);
    if (first_of_rank || span.what() == v1::LifeSpan::PREPARED) slice.arrow = arrow_;
    trace_.slices.push_back(std::move(slice));
  }

  const v1::StartTimes& start_;
  const Place coordinator_, worker_, rank_;
  const uint64_t arrow_;
  StartTrace& trace_;
  bool rank_has_arrow_ = false;
};

void NameTracks(const v1::ReadStartsResponse& starts, const std::map<std::string, uint64_t>& workers,
                StartTrace& trace) {
  if (!starts.submit().empty()) trace.tracks.push_back({kClient, 0, -3, "client", "hooke submit"});
  std::set<std::pair<uint64_t, uint32_t>> named;
  const auto name = [&](const StartTrack& track) {
    if (named.insert({track.process, track.track}).second) trace.tracks.push_back(track);
  };
  for (const v1::StartTimes& start : starts.starts()) {
    const std::string group = absl::StrCat("group ", start.group());
    name({kCoordinator, start.group(), -2, "coordinator", group});
    name({workers.at(start.worker()), start.group(), -1, absl::StrCat("worker ", start.worker()), group});
    const uint64_t rank = TraceProcessOf(start.group(), 0);
    name({rank, kStartTrack, static_cast<int64_t>(rank), absl::StrCat(group, " rank 0"), "start"});
  }
}

}  // namespace

uint64_t TraceProcessOf(uint32_t group, uint32_t rank) { return uint64_t{group} * kJobRanksMax + rank % kJobRanksMax; }

StartTrace TraceStarts(const v1::ReadStartsResponse& starts) {
  StartTrace trace;
  std::map<std::string, uint64_t> workers;
  for (const v1::StartTimes& start : starts.starts()) workers.emplace(start.worker(), 0);
  uint64_t next = kFirstWorker;
  for (auto& [name, process] : workers) process = next++;
  NameTracks(starts, workers, trace);
  for (const v1::LifeSpan& span : starts.submit()) {
    if (!CanShow(span)) continue;
    StartSlice slice = SliceOf({kClient, 0}, NameOf(span.what()), span.begin_unix_us(), EndOf(span));
    const bool leads_on = span.what() == v1::LifeSpan::SUBMIT && !starts.starts().empty();
    if (leads_on && starts.starts(0).incarnation() == 1) slice.arrow = 1;
    trace.slices.push_back(std::move(slice));
  }
  uint64_t arrow = 0;
  for (const v1::StartTimes& start : starts.starts()) OneStart(start, workers.at(start.worker()), ++arrow, trace).Add();
  // A span comes before those inside it: at the same begin the longer one first.
  std::stable_sort(trace.slices.begin(), trace.slices.end(), [](const StartSlice& a, const StartSlice& b) {
    return std::tie(a.process, a.track, a.begin_ns, b.duration_ns) <
           std::tie(b.process, b.track, b.begin_ns, a.duration_ns);
  });
  return trace;
}

}  // namespace hooke
