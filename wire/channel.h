#ifndef HOOKE_WIRE_CHANNEL_H_
#define HOOKE_WIRE_CHANNEL_H_

// The one place where production code makes a channel; tests/house_rules refuses others. So all channels carry the
// cluster's token in the same way.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "wire/cluster_token.h"

namespace hooke {

// Names of metadata that a caller adds to a call (CallCredential).
constexpr char kAuthorizationKey[] = "authorization";  // "Bearer SECRET".
constexpr char kJobKey[] = "hooke-job";                // CallCredential.job_id; absent if that is empty.

// Makes a channel to `address` that adds `credential` to each call. The address is HOST:PORT, or "unix:PATH". The
// channel does not connect yet.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const CallCredential& credential);

// For callers that wait until a connection stands. After a failed attempt to connect, the channel pauses for
// `first_pause`, and later for up to a second: a restarted daemon is back within seconds, while gRPC's own pauses grow
// to two minutes. An attempt may take 2 s. It needs two round trips, and more on a busy machine.
void SetReconnect(grpc::ChannelArguments& arguments, absl::Duration first_pause);

}  // namespace hooke

#endif  // HOOKE_WIRE_CHANNEL_H_
