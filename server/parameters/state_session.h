#ifndef HOOKE_SERVER_PARAMETERS_STATE_SESSION_H_
#define HOOKE_SERVER_PARAMETERS_STATE_SESSION_H_

// Handles the messages of KeepState and FetchState of hooke.v1.ParameterServer. Only the attached incarnation of a
// group may keep or fetch its ranks' states. A session belongs to one stream and one thread; after an error the caller
// ends the stream. No shard's lock is held while a state is read or written.

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/parameter_server.pb.h"
#include "server/parameters/kept_states.h"
#include "server/parameters/parameter_store.h"

namespace hooke {

class KeepStateSession {
 public:
  // `store` outlives the session.
  explicit KeepStateSession(ParameterStore* store) : store_(store) {}

  // Takes one message. Errors are those of ParameterStore::Find, Shard::CheckSpeaker and KeptStates. INVALID_ARGUMENT:
  // the message is malformed or out of place.
  absl::Status Receive(const v1::KeepStateRequest& message);
  // Completes the state. Call it when the sender has sent everything. OK: the state is on disk. ABORTED: a later
  // incarnation has attached meanwhile, and the state is not kept.
  absl::Status Finish();

 private:
  absl::Status Open(const v1::KeepStateRequest::Header& header);

  ParameterStore* const store_;
  v1::Sender sender_;
  KeptStateId keeps_;
  std::unique_ptr<KeptStates::Writer> writer_;  // Null before the header.
};

// Answers `request` message by message. Stops at the first error of `send`.
absl::Status FetchState(ParameterStore& store, const v1::FetchStateRequest& request,
                        absl::FunctionRef<absl::Status(const v1::FetchStateResponse&)> send);

}  // namespace hooke

#endif  // HOOKE_SERVER_PARAMETERS_STATE_SESSION_H_
