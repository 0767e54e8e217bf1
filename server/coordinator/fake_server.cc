#include "server/coordinator/fake_server.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace hooke {

v1::ServerHeartbeatRequest FakeServer(const std::string& address) {
  v1::ServerHeartbeatRequest request;
  request.set_address(address);
  request.set_server_id(absl::StrCat("id of ", absl::StrReplaceAll(address, {{":", "-"}})));
  request.set_instance("its process");
  return request;
}

DialAnswer FakeServerAnswers(const std::string& address) {
  return {absl::OkStatus(), FakeServer(address).server_id(), FakeServer(address).instance()};
}

void AnswerDials(Coordinator& coordinator, Instant now) {
  for (const ServerDial& dial : coordinator.TakeDials()) {
    coordinator.ServerDialed(dial, FakeServerAnswers(dial.address), now);
  }
}

}  // namespace hooke
