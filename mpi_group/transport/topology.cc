#include "mpi_group/transport/topology.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

static_assert(std::is_trivially_copyable_v<NodePattern>, "patterns travel as bytes");

// The device and inode behind a path. They are equal if two processes see the same file there.
std::string Seen(const char* path) {
  struct stat seen = {};
  if (stat(path, &seen) != 0) return "none";
  return absl::StrCat(seen.st_dev, ":", seen.st_ino);
}

// Puts the next rank on the given node. False if the node's number is neither known nor the next one.
bool AddRank(uint64_t node, Nodes& nodes) {
  if (node > nodes.ranks_of_node.size()) return false;
  if (node == nodes.ranks_of_node.size()) nodes.ranks_of_node.emplace_back();
  nodes.ranks_of_node[node].push_back(static_cast<int>(nodes.node_of_rank.size()));
  nodes.node_of_rank.push_back(static_cast<int>(node));
  return true;
}

// Puts the next ranks on the nodes of a pattern. False if there are more than `room`, or none, or as in AddRank.
bool AddRanks(const NodePattern& pattern, uint64_t room, Nodes& nodes) {
  const uint64_t period = uint64_t{pattern.nodes} * pattern.each;
  if (period == 0 || pattern.times == 0 || period > room || pattern.times > room / period) return false;
  for (uint64_t i = 0; i < pattern.times * period; ++i) {
    if (!AddRank(pattern.first + i % period / pattern.each, nodes)) return false;
  }
  return true;
}

}  // namespace

std::string NodeIdentity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  return absl::StrCat("boot ", boot, " network ", Seen("/proc/self/ns/net"), " memory ", Seen("/dev/shm"), " user ",
                      geteuid());
}

// FNV-1a.
uint64_t HashOfIdentity(const std::string& identity) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (unsigned char c : identity) hash = (hash ^ c) * 0x100000001b3u;
  return hash;
}

Nodes NodesFrom(const std::vector<std::string>& identity_of_rank) {
  Nodes nodes;
  std::map<std::string, int> numbers;
  for (const std::string& identity : identity_of_rank) {
    const int node = numbers.try_emplace(identity, static_cast<int>(numbers.size())).first->second;
    AddRank(node, nodes);
  }
  return nodes;
}

int PlaceOf(int rank, const Nodes& nodes) {
  const std::vector<int>& ranks = nodes.ranks_of_node[nodes.node_of_rank[rank]];
  return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

std::vector<NodePattern> PatternsOf(const std::vector<int>& node_of_rank) {
  const size_t ranks = node_of_rank.size();
  const auto ranks_in_a_row = [&](size_t at) {
    size_t end = at;
    while (end < ranks && node_of_rank[end] == node_of_rank[at]) ++end;
    return end - at;
  };
  std::vector<NodePattern> patterns;
  for (size_t at = 0; at < ranks;) {
    const size_t each = ranks_in_a_row(at);
    size_t period = each;
    while (at + period < ranks && node_of_rank[at + period] == node_of_rank[at + period - 1] + 1 &&
           ranks_in_a_row(at + period) == each) {
      period += each;
    }
    const auto begin = node_of_rank.begin() + static_cast<ptrdiff_t>(at);
    size_t end = at + period;
    while (end + period <= ranks &&
           std::equal(begin, begin + static_cast<ptrdiff_t>(period), begin + static_cast<ptrdiff_t>(end - at))) {
      end += period;
    }
    patterns.push_back({static_cast<uint32_t>(node_of_rank[at]), static_cast<uint32_t>(period / each),
                        static_cast<uint32_t>(each), static_cast<uint32_t>((end - at) / period)});
    at = end;
  }
  return patterns;
}

absl::StatusOr<Nodes> NodesFrom(absl::Span<const NodePattern> patterns, int ranks) {
  Nodes nodes;
  nodes.node_of_rank.reserve(ranks);
  bool valid = true;
  for (const NodePattern& pattern : patterns) {
    valid = valid && AddRanks(pattern, ranks - nodes.node_of_rank.size(), nodes);
  }
  if (valid && nodes.node_of_rank.size() == static_cast<size_t>(ranks)) return nodes;
  return absl::InternalError(absl::StrCat("rank 0 described the nodes of ", nodes.node_of_rank.size(),
                                          " ranks, not of ", ranks, ", or numbered them wrongly"));
}

}  // namespace hooke
