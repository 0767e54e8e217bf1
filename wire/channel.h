#ifndef HOOKE_WIRE_CHANNEL_H_
#define HOOKE_WIRE_CHANNEL_H_

// The one place where a channel is made. In production code, tests/house_rules refuses channels that are made
// elsewhere. Encryption will be added here, too.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "wire/cluster_token.h"

namespace hooke {

// Names of metadata that a caller adds to a call (CallCredential).
constexpr char kAuthorizationKey[] = "authorization";  // "Bearer SECRET".
constexpr char kJobKey[] = "hooke-job";                // CallCredential.job_id; absent if that is empty.

// Makes a channel to `address` that adds `credential` to each call. The address is HOST:PORT, or "unix:PATH". The
// channel does not connect yet.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const CallCredential& credential);

}  // namespace hooke

#endif  // HOOKE_WIRE_CHANNEL_H_
