#include "server/coordinator/choose_servers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace hooke {

ServerChoice ChooseServers(uint32_t wanted, absl::Span<const LiveServer> live) {
  if (live.empty()) return {{}, "no server has joined"};
  if (wanted > live.size()) {
    return {{}, absl::StrCat(wanted, " servers needed, ", live.size(), live.size() == 1 ? " has" : " have", " joined")};
  }
  std::vector<LiveServer> chosen(live.begin(), live.end());
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
  for (LiveServer& server : chosen) choice.servers.push_back(std::move(server.address));
  choice.reason = wanted == 0 ? absl::StrCat("all that have joined, ", live.size())
                              : absl::StrCat("the ", wanted, " of ", live.size(), " that hold the fewest bytes");
  return choice;
}

}  // namespace hooke
