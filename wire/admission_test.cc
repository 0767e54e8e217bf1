#include "wire/admission.h"

#include <grpcpp/impl/client_unary_call.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/parameter_server.grpc.pb.h"
#include "wire/channel.h"

namespace hooke {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* const kSecret = "0123456789abcdef";

// A service that counts the calls that reach it.
class Counted final : public v1::ParameterServer::Service {
 public:
  grpc::Status Identify(grpc::ServerContext*, const v1::IdentifyRequest*, v1::IdentifyResponse*) override {
    ++calls_;
    return grpc::Status::OK;
  }
  grpc::Status Save(grpc::ServerContext* context, const v1::SaveRequest* request, v1::SaveResponse*) override {
    ++calls_;
    const absl::Status status = CheckJobOfCaller(*context, request->sender().job_id());
    return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  }
  grpc::Status Exchange(grpc::ServerContext*, grpc::ServerReaderWriter<v1::Frame, v1::Frame>*) override {
    ++calls_;
    return grpc::Status::OK;
  }

  int calls() const { return calls_; }

 private:
  std::atomic<int> calls_{0};
};

class AdmissionTest : public ::testing::Test {
 protected:
  void Listen(const ClusterToken& token) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", ListenCredentials({token, {"/hooke.v1.ParameterServer/Save"}}), &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  std::unique_ptr<v1::ParameterServer::Stub> Dial(const CallCredential& credential) const {
    return v1::ParameterServer::NewStub(OpenChannel(address_, grpc::ChannelArguments(), credential));
  }

  grpc::Status Identify(const CallCredential& credential) const {
    grpc::ClientContext context;
    v1::IdentifyResponse response;
    return Dial(credential)->Identify(&context, {}, &response);
  }

  grpc::Status Save(const CallCredential& credential, const std::string& job_id) const {
    grpc::ClientContext context;
    v1::SaveRequest request;
    request.mutable_sender()->set_job_id(job_id);
    v1::SaveResponse response;
    return Dial(credential)->Save(&context, request, &response);
  }

  grpc::Status Exchange(const CallCredential& credential) const {
    grpc::ClientContext context;
    const std::unique_ptr<v1::ParameterServer::Stub> stub = Dial(credential);
    const auto stream = stub->Exchange(&context);
    v1::Frame frame;
    while (stream->Read(&frame)) {
    }
    return stream->Finish();
  }

  const ClusterToken token_{kSecret};
  Counted service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(AdmissionTest, TheTokenAdmits) {
  Listen(token_);
  EXPECT_TRUE(Identify(token_.ForCalls()).ok());
  EXPECT_TRUE(Save(token_.ForCalls(), "a-1").ok());
  EXPECT_TRUE(Exchange(token_.ForCalls()).ok());
  EXPECT_EQ(service_.calls(), 3);
}

// A call without the token, or with another token, reaches no method. Its error says what to do.
TEST_F(AdmissionTest, OthersReachNoMethod) {
  Listen(token_);
  const ClusterToken other("fedcba9876543210");
  for (const CallCredential& credential : {CallCredential(), other.ForCalls(), other.ForJob("a-1")}) {
    for (const grpc::Status& status : {Identify(credential), Save(credential, "a-1"), Exchange(credential)}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("--token-file"));
      EXPECT_THAT(status.error_message(), Not(HasSubstr(kSecret)));
    }
  }
  EXPECT_EQ(service_.calls(), 0);
}

// A call of a method that the service does not have is refused like any other call, because admission comes before
// methods.
TEST_F(AdmissionTest, CoversMethodsThatDoNotExist) {
  Listen(token_);
  grpc::ClientContext context;
  v1::IdentifyResponse response;
  const grpc::internal::RpcMethod method("/hooke.v1.ParameterServer/NoSuchMethod",
                                         grpc::internal::RpcMethod::NORMAL_RPC);
  const auto channel = OpenChannel(address_, grpc::ChannelArguments(), {});
  EXPECT_EQ(
      grpc::internal::BlockingUnaryCall(channel.get(), method, &context, v1::IdentifyRequest(), &response).error_code(),
      grpc::StatusCode::UNAUTHENTICATED);
}

// With the credential of its job, a rank may call only the methods for ranks, and only about its own job.
TEST_F(AdmissionTest, JobsCredentialReachesItsOwnCenterOnly) {
  Listen(token_);
  EXPECT_TRUE(Save(token_.ForJob("a-1"), "a-1").ok());
  EXPECT_EQ(Save(token_.ForJob("a-1"), "a-2").error_code(), grpc::StatusCode::PERMISSION_DENIED);
  const grpc::Status status = Identify(token_.ForJob("a-1"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("is not enough for /hooke.v1.ParameterServer/Identify"));
}

// A call with two credentials is refused. Otherwise admission and the method might read different ones.
TEST_F(AdmissionTest, TwoCredentialsInOneCallAreRefused) {
  Listen(token_);
  for (const auto& [first, second] : {std::pair("a-1", "b-2"), std::pair("b-2", "a-1")}) {
    grpc::ClientContext context;
    context.AddMetadata(kJobKey, first);
    v1::SaveRequest request;
    request.mutable_sender()->set_job_id("b-2");
    v1::SaveResponse response;
    EXPECT_EQ(Dial(token_.ForJob(second))->Save(&context, request, &response).error_code(),
              grpc::StatusCode::UNAUTHENTICATED);
  }
  grpc::ClientContext context;
  context.AddMetadata(kAuthorizationKey, "Bearer else");
  v1::IdentifyResponse response;
  EXPECT_EQ(Dial(token_.ForCalls())->Identify(&context, {}, &response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(service_.calls(), 0);
}

// A server without a token admits calls that have a token. So a running cluster can get its token program by program.
TEST_F(AdmissionTest, WithoutATokenEverybodyIsAdmitted) {
  Listen(ClusterToken());
  EXPECT_TRUE(Identify({}).ok());
  EXPECT_TRUE(Identify(token_.ForCalls()).ok());
}

}  // namespace
}  // namespace hooke
