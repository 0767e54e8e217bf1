#include "server/scheduling/fair_share.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>
#include <tuple>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "wire/worker_limits.h"

namespace hooke {
namespace {

// Jobs of one priority that have not started: the owner with the least use comes next.
void AppendFairly(absl::Span<const QueuedJob> jobs, const std::vector<size_t>& indexes,
                  std::map<std::string, double>& uses, std::vector<size_t>& order) {
  std::map<std::string, std::deque<size_t>> of_owner;
  for (const size_t index : indexes) of_owner[jobs[index].owner].push_back(index);
  using Next = std::tuple<double, uint64_t, std::string>;  // Use, number of the job, owner.
  std::set<Next> next;
  for (const auto& [owner, waiting] : of_owner) next.insert({uses[owner], jobs[waiting.front()].number, owner});
  while (!next.empty()) {
    const std::string owner = std::get<2>(*next.begin());
    next.erase(next.begin());
    std::deque<size_t>& waiting = of_owner.at(owner);
    order.push_back(waiting.front());
    uses[owner] += static_cast<double>(jobs[waiting.front()].slots);
    waiting.pop_front();
    if (!waiting.empty()) next.insert({uses[owner], jobs[waiting.front()].number, owner});
  }
}

}  // namespace

double SlotSecondsAfter(double slot_seconds, uint64_t slots, absl::Duration time, absl::Duration half_life) {
  if (time <= absl::ZeroDuration()) return slot_seconds;
  const double left = std::exp2(-absl::FDivDuration(time, half_life));
  // The integral of slots x 2^(-t / half_life) from 0 to `time`.
  const double added = static_cast<double>(slots) * absl::ToDoubleSeconds(half_life) / M_LN2 * (1 - left);
  return slot_seconds * left + added;
}

double MeanSlots(double slot_seconds, absl::Duration half_life) {
  return slot_seconds * M_LN2 / absl::ToDoubleSeconds(half_life);
}

std::vector<size_t> FairOrder(absl::Span<const QueuedJob> jobs, const std::map<std::string, double>& uses) {
  std::vector<size_t> sorted(jobs.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  const auto rank = [&jobs](size_t i) {
    return std::make_tuple(-int64_t{jobs[i].priority}, !jobs[i].started, jobs[i].number);
  };
  absl::c_sort(sorted, [&rank](size_t a, size_t b) { return rank(a) < rank(b); });
  std::map<std::string, double> used = uses;
  std::vector<size_t> order;
  order.reserve(jobs.size());
  for (size_t begin = 0; begin < sorted.size();) {
    const QueuedJob& first = jobs[sorted[begin]];
    if (first.started) {
      used[first.owner] += static_cast<double>(first.slots);
      order.push_back(sorted[begin++]);
      continue;
    }
    size_t end = begin;
    while (end < sorted.size() && jobs[sorted[end]].priority == first.priority) ++end;
    AppendFairly(jobs, {sorted.begin() + static_cast<ptrdiff_t>(begin), sorted.begin() + static_cast<ptrdiff_t>(end)},
                 used, order);
    begin = end;
  }
  return order;
}

std::optional<uint32_t> OwnerSlots::LimitOf(const std::string& owner) const {
  const auto found = of.find(owner);
  return found == of.end() ? each : std::optional<uint32_t>(found->second);
}

absl::StatusOr<OwnerSlots> ParseOwnerSlots(absl::string_view text) {
  OwnerSlots slots;
  if (text.empty()) return slots;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::pair<absl::string_view, absl::string_view> halves = absl::StrSplit(part, absl::MaxSplits('=', 1));
    const bool names = absl::StrContains(part, '=');
    const absl::string_view number = names ? halves.second : part;
    uint32_t limit = 0;
    const bool digits = !number.empty() && absl::c_all_of(number, absl::ascii_isdigit);
    const bool good = digits && absl::SimpleAtoi(number, &limit) && (!names || IsNodeName(halves.first));
    const bool twice = good && (names ? slots.of.count(std::string(halves.first)) > 0 : slots.each.has_value());
    if (!good || twice) {
      return absl::InvalidArgumentError(absl::StrCat("\"", part, "\" ", twice ? "is given twice" : "is no limit",
                                                     ", allowed is a list like 8,anna=16: the slots of each owner, and "
                                                     "those of owners with a limit of their own"));
    }
    if (names) {
      slots.of[std::string(halves.first)] = limit;
    } else {
      slots.each = limit;
    }
  }
  return slots;
}

std::string OwnerText(const std::string& owner) { return owner.empty() ? "jobs without an owner" : owner; }

}  // namespace hooke
