#include "worker/cores/choose_cores.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

std::string Count(size_t number, const char* thing) { return absl::StrCat(number, " ", thing, number == 1 ? "" : "s"); }

// The cores, or their hardware threads as if each were a core; each slot gets `each` of them.
struct Shares {
  std::vector<Core> units;
  size_t each = 0;  // The units of each slot. 0: there are more slots than hardware threads.
  const char* unit = "core";
};

Shares SharesFor(std::vector<Core> cores, uint32_t slots) {
  // Neighbours in this order share a memory node.
  std::sort(cores.begin(), cores.end(), [](const Core& a, const Core& b) {
    return std::make_pair(a.memory_node, a.cpus.front()) < std::make_pair(b.memory_node, b.cpus.front());
  });
  if (slots <= cores.size()) return {cores, cores.size() / slots, "core"};
  Shares threads;
  threads.unit = "hardware thread";
  for (const Core& core : cores) {
    for (const int cpu : core.cpus) threads.units.push_back({core.memory_node, {cpu}});
  }
  threads.each = threads.units.size() / slots;
  return threads;
}

// Returns the free units of each memory node that has some. The nodes come in the order in which they are to be used.
std::vector<std::vector<Core>> FreeUnits(const Shares& shares, const std::set<int>& taken, size_t needed) {
  std::map<int, std::vector<Core>> by_node;
  for (const Core& unit : shares.units) {
    const bool free = std::none_of(unit.cpus.begin(), unit.cpus.end(), [&](int cpu) { return taken.count(cpu) > 0; });
    if (free) by_node[unit.memory_node].push_back(unit);
  }
  std::vector<std::vector<Core>> nodes;
  nodes.reserve(by_node.size());
  for (auto& [node, units] : by_node) nodes.push_back(std::move(units));
  std::stable_sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.size() > b.size(); });
  // The last node that has enough is the one with the fewest.
  const auto enough = std::find_if(nodes.rbegin(), nodes.rend(), [&](const auto& n) { return n.size() >= needed; });
  if (enough != nodes.rend()) std::rotate(nodes.begin(), enough.base() - 1, enough.base());
  return nodes;
}

void GiveRank(std::vector<Core>::const_iterator begin, size_t count, CoresChoice& choice) {
  std::vector<int> cpus;
  for (auto unit = begin; unit != begin + static_cast<std::ptrdiff_t>(count); ++unit) {
    cpus.insert(cpus.end(), unit->cpus.begin(), unit->cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  choice.cpus_of_rank.push_back(std::move(cpus));
}

}  // namespace

size_t CountCpus(const std::vector<Core>& cores) {
  size_t count = 0;
  for (const Core& core : cores) count += core.cpus.size();
  return count;
}

uint32_t CountShares(uint32_t slots, uint32_t given, uint32_t cpus) {
  const uint64_t may_use = std::min(given, cpus);
  const uint64_t shares = (uint64_t{slots} * cpus + may_use - 1) / may_use;
  return static_cast<uint32_t>(std::min<uint64_t>(shares, UINT32_MAX));
}

CoresChoice ChooseCores(const std::vector<Core>& cores, const std::set<int>& taken, CoresWish wish) {
  const Shares shares = SharesFor(cores, wish.slots);
  CoresChoice choice;
  if (shares.each == 0) {
    choice.why_not = absl::StrCat("it has ", wish.slots, " slots, but only ", Count(CountCpus(cores), shares.unit));
    return choice;
  }
  choice.share = Count(shares.each, shares.unit);
  const size_t needed = shares.each * wish.ranks;
  const std::vector<std::vector<Core>> nodes = FreeUnits(shares, taken, needed);
  size_t free = 0;
  for (const std::vector<Core>& node : nodes) free += node.size();
  if (free < needed) {
    choice.why_not = absl::StrCat(Count(wish.ranks, "rank"), " would get ", choice.share, " each, but ", free, " of ",
                                  Count(shares.units.size(), shares.unit),
                                  " are free: ranks of other groups or workers on this machine have the others");
    return choice;
  }
  // Each rank first gets its cores from one memory node, node by node. The last ranks get the cores that are left over
  // in all nodes.
  std::vector<Core> left;
  for (const std::vector<Core>& node : nodes) {
    auto next = node.begin();
    for (; choice.cpus_of_rank.size() < wish.ranks && node.end() - next >= static_cast<std::ptrdiff_t>(shares.each);
         next += static_cast<std::ptrdiff_t>(shares.each)) {
      GiveRank(next, shares.each, choice);
    }
    left.insert(left.end(), next, node.end());
  }
  for (auto next = left.begin(); choice.cpus_of_rank.size() < wish.ranks;
       next += static_cast<std::ptrdiff_t>(shares.each)) {
    GiveRank(next, shares.each, choice);
  }
  return choice;
}

std::string CpuList(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (last > i) absl::StrAppend(&text, "-", cpus[last]);
    i = last + 1;
  }
  return text;
}

std::string SayCores(const CoresChoice& choice, const std::string& worker, uint32_t first_rank) {
  if (!choice.bound()) return absl::StrCat("ranks on ", worker, " are not bound to cores: ", choice.why_not);
  std::string text = absl::StrCat("each rank on ", worker, " has ", choice.share, ": ");
  for (size_t i = 0; i < choice.cpus_of_rank.size(); ++i) {
    const std::vector<int>& cpus = choice.cpus_of_rank[i];
    absl::StrAppend(&text, i == 0 ? "" : "; ", "rank ", first_rank + i, cpus.size() == 1 ? " CPU " : " CPUs ",
                    CpuList(cpus));
  }
  return text;
}

}  // namespace hooke
