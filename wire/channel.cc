#include "wire/channel.h"

#include <grpcpp/support/client_interceptor.h>

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the credential to each call. gRPC's own call credentials refuse connections that are not encrypted.
class AddCredential final : public Interceptor {
 public:
  explicit AddCredential(CallCredential credential) : credential_(std::move(credential)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      auto* metadata = methods->GetSendInitialMetadata();
      metadata->emplace(kAuthorizationKey, absl::StrCat("Bearer ", credential_.secret));
      if (!credential_.job_id.empty()) metadata->emplace(kJobKey, credential_.job_id);
    }
    methods->Proceed();
  }

 private:
  const CallCredential credential_;
};

class AddCredentialFactory final : public ClientInterceptorFactoryInterface {
 public:
  explicit AddCredentialFactory(CallCredential credential) : credential_(std::move(credential)) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override { return new AddCredential(credential_); }

 private:
  const CallCredential credential_;
};

}  // namespace

void SetReconnect(grpc::ChannelArguments& arguments, absl::Duration first_pause) {
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, static_cast<int>(absl::ToInt64Milliseconds(first_pause)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // In spite of its name this limits one attempt.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000);
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const grpc::ChannelArguments& arguments,
                                           const CallCredential& credential) {
  if (credential.secret.empty())
    return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<AddCredentialFactory>(credential));
  return grpc::experimental::CreateCustomChannelWithInterceptors(address, grpc::InsecureChannelCredentials(), arguments,
                                                                 std::move(interceptors));
}

}  // namespace hooke
