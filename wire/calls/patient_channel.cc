#include "wire/calls/patient_channel.h"

#include "wire/channel.h"

namespace hooke {
namespace {

constexpr int kBytesMax = 64 << 20;

}  // namespace

std::shared_ptr<grpc::Channel> MakeChannel(const std::string& address, const ClusterToken& token) {
  grpc::ChannelArguments arguments;
  // We never reach the nodes of a cluster through a web proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A restarted coordinator is back within seconds, but gRPC's default backoff grows to two minutes. An attempt to
  // connect may take as long as gRPC likes: a call waits for a busy coordinator until its own limit.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // gRPC would share one connection between channels to one address, but each stream needs its own.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(kBytesMax);
  return OpenChannel(address, arguments, token.ForCalls());
}

}  // namespace hooke
