#include "server/cluster/choose_servers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace hooke {
namespace {

constexpr size_t kProblemsMax = 3;  // The most unusable servers that one reason describes.

// Says what is wrong with the servers that cannot be used, as "; one advertises ...". Empty: all servers can be used.
std::string ProblemsOf(absl::Span<const LiveServer> live) {
  std::vector<std::string> texts;
  size_t left_out = 0;
  for (const LiveServer& server : live) {
    std::string text;
    if (server.reach == LiveServer::Reach::kFailed) text = absl::StrCat("one ", server.problem);
    if (server.reach == LiveServer::Reach::kBeingDialed) {
      text = absl::StrCat("one advertises ", server.address, ", where the coordinator is dialing it");
    }
    if (text.empty()) continue;
    if (texts.size() < kProblemsMax) {
      texts.push_back(std::move(text));
    } else {
      ++left_out;
    }
  }
  if (left_out > 0) texts.push_back(absl::StrCat("and ", left_out, " more: see `hooke nodes`"));
  return texts.empty() ? "" : absl::StrCat("; ", absl::StrJoin(texts, "; "));
}

std::string Joined(size_t servers) { return absl::StrCat(servers, servers == 1 ? " has" : " have", " joined"); }

}  // namespace

ServerChoice ChooseServers(uint32_t wanted, absl::Span<const LiveServer> live) {
  if (live.empty()) return {{}, "no server has joined"};
  const std::string problems = ProblemsOf(live);
  std::vector<LiveServer> chosen;
  bool dialing = false;
  for (const LiveServer& server : live) {
    if (server.reach == LiveServer::Reach::kReached) chosen.push_back(server);
    dialing = dialing || server.reach == LiveServer::Reach::kBeingDialed;
  }
  const size_t reached = chosen.size();
  if (wanted > reached) {
    const std::string usable = reached < live.size() ? absl::StrCat(", ", reached, " can be used") : "";
    return {{}, absl::StrCat(wanted, " servers needed, ", Joined(live.size()), usable, problems)};
  }
  if (wanted == 0 && dialing) return {{}, absl::StrCat("all servers are wanted", problems)};
  if (reached == 0) return {{}, absl::StrCat("no server can be used", problems)};
  if (wanted > 0) {
    std::sort(chosen.begin(), chosen.end(), [](const LiveServer& a, const LiveServer& b) {
      return std::tuple(a.center_bytes, !a.own, a.address) < std::tuple(b.center_bytes, !b.own, b.address);
    });
    chosen.resize(wanted);
  }
  std::sort(chosen.begin(), chosen.end(), [](const LiveServer& a, const LiveServer& b) {
    return std::tuple(!a.own, a.address) < std::tuple(!b.own, b.address);
  });
  ServerChoice choice;
  for (LiveServer& server : chosen) choice.servers.push_back({std::move(server.id), std::move(server.address)});
  const std::string can_be_used = reached < live.size() ? absl::StrCat(" of ", live.size()) : "";
  choice.reason = wanted == 0 ? absl::StrCat("all that have joined, ", reached, can_be_used)
                              : absl::StrCat("the ", wanted, " of ", reached, " that hold the fewest bytes");
  absl::StrAppend(&choice.reason, problems);
  return choice;
}

}  // namespace hooke
