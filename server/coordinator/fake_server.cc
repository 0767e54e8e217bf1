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

v1::ClosedGroup ClosedAt(uint32_t group, uint32_t incarnation, uint64_t step) {
  v1::ClosedGroup closed;
  closed.set_group(group);
  closed.set_incarnation(incarnation);
  closed.set_step(step);
  return closed;
}

absl::StatusOr<v1::ServerHeartbeatResponse> FakeHeartbeat(Coordinator& coordinator, const std::string& address,
                                                          Instant now, const FakeShards& shards) {
  v1::ServerHeartbeatRequest request = FakeServer(address);
  absl::StatusOr<v1::ServerHeartbeatResponse> response = coordinator.ServerHeartbeat(request, now);
  if (!response.ok() || response->closing().empty()) return response;
  for (const v1::GenerationEnd& end : response->closing()) {
    v1::ClosedGeneration& closed = *request.add_closed();
    closed.set_job_id(end.job_id());
    closed.set_incarnation(end.incarnation());
    const auto shard = shards.find(end.job_id());
    if (shard != shards.end()) closed.mutable_groups()->Assign(shard->second.begin(), shard->second.end());
  }
  return coordinator.ServerHeartbeat(request, now);
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
