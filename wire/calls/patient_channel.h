#ifndef HOOKE_WIRE_CALLS_PATIENT_CHANNEL_H_
#define HOOKE_WIRE_CALLS_PATIENT_CHANNEL_H_

// The channel of calls for people, who wait for their end.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "wire/cluster_token.h"

namespace hooke {

// Makes a channel without a proxy, quick to reconnect, with a connection of its own. It takes messages of 64 MiB.
// `token` is that of the cluster; it may be empty.
std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const ClusterToken& token);

}  // namespace hooke

#endif  // HOOKE_WIRE_CALLS_PATIENT_CHANNEL_H_
