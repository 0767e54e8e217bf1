#ifndef HOOKE_WIRE_CHANNEL_H_
#define HOOKE_WIRE_CHANNEL_H_

// The one place where a channel is made. tests/house_rules refuses any other in production code. Encryption will come
// here, too.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "wire/cluster_token.h"

namespace hooke {

// Names of a call's metadata.
constexpr char kAuthorizationKey[] = "authorization";  // "Bearer SECRET".
constexpr char kJobKey[] = "hooke-job";                // CallCredential.job_id; absent if that is empty.

// Makes a channel to `address` that adds `credential` to each call. It is HOST:PORT, or "unix:PATH". Does not connect
// yet.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const CallCredential& credential);

}  // namespace hooke

#endif  // HOOKE_WIRE_CHANNEL_H_
