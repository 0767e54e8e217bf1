#include "worker/gpus/choose_gpus.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace hooke {
namespace {

bool NamesGpu(absl::string_view name) {
  if (absl::StartsWith(name, "GPU-") || absl::StartsWith(name, "MIG-")) return name.size() > 4;
  return !name.empty() && name.size() <= 4 && std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// Returns X of a line that ends with "(UUID: X)"; "" if it does not.
std::string UuidOf(absl::string_view line) {
  constexpr absl::string_view kBefore = "(UUID: ";
  const size_t at = line.rfind(kBefore);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = line.substr(at + kBefore.size());
  const size_t end = rest.find(')');
  return end == absl::string_view::npos ? "" : std::string(rest.substr(0, end));
}

}  // namespace

std::vector<GpuName> ParseGpuList(absl::string_view text) {
  std::vector<GpuName> names;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (!NamesGpu(name)) break;
    names.emplace_back(name);
  }
  return names;
}

std::string GpuListFault(absl::string_view text) {
  std::set<absl::string_view> seen;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    name = absl::StripAsciiWhitespace(name);
    if (!NamesGpu(name)) {
      return absl::StrCat("names no GPU: \"", name, "\"; give auto, none, or a list like 0,1 or GPU-5f1e...");
    }
    if (!seen.insert(name).second) return absl::StrCat("names GPU ", name, " twice");
  }
  return "";
}

std::vector<GpuName> ParseNvidiaSmi(absl::string_view output) {
  std::vector<GpuName> names;
  bool divided = false;  // The last GPU of the list was replaced by its parts.
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::string uuid = UuidOf(line);
    if (!NamesGpu(uuid)) continue;
    if (!absl::StartsWith(uuid, "MIG-")) {
      divided = false;
    } else if (!divided) {
      if (!names.empty()) names.pop_back();
      divided = true;
    }
    names.push_back(uuid);
  }
  return names;
}

uint32_t GpusOfASlot(size_t gpus, uint32_t slots) {
  if (gpus == 0) return 0;
  return std::max(uint32_t{1}, static_cast<uint32_t>(gpus / std::max(uint32_t{1}, slots)));
}

std::vector<std::vector<size_t>> ChooseGpus(std::vector<uint32_t> users, uint32_t each, uint32_t ranks) {
  const size_t share = std::min<size_t>(each, users.size());
  std::vector<std::vector<size_t>> chosen(ranks);
  for (std::vector<size_t>& of_rank : chosen) {
    std::vector<size_t> order(users.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&users](size_t a, size_t b) { return users[a] < users[b]; });
    of_rank.assign(order.begin(), order.begin() + static_cast<ptrdiff_t>(share));
    std::sort(of_rank.begin(), of_rank.end());
    for (const size_t gpu : of_rank) ++users[gpu];
  }
  return chosen;
}

std::string SayGpus(absl::Span<const std::vector<GpuName>> gpus_of_rank, absl::string_view worker, uint32_t first_rank,
                    bool shared) {
  std::string text = absl::StrCat("GPUs on ", worker, shared ? ", which ranks share: " : ": ");
  for (size_t i = 0; i < gpus_of_rank.size(); ++i) {
    absl::StrAppend(&text, i > 0 ? "; " : "", "rank ", first_rank + i, " has ", absl::StrJoin(gpus_of_rank[i], ","));
  }
  return text;
}

}  // namespace hooke
