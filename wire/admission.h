#ifndef HOOKE_WIRE_ADMISSION_H_
#define HOOKE_WIRE_ADMISSION_H_

// The one place where a server admits calls. gRPC asks for admission before it looks for the called method. So the
// check covers each call of each service, and no method can be forgotten.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "wire/cluster_token.h"

namespace hooke {

struct AdmissionOptions {
  ClusterToken token;  // Without a token, every call is admitted.
  // Methods that a job's ranks may call with the credential of their job, each as "/package.Service/Method". Such a
  // method must check with CheckJobOfCaller that the call is about the caller's job, or ask for the job's key.
  std::set<std::string> job_methods;
};

// Returns OK if a call of `method` with this credential is admitted. Otherwise returns UNAUTHENTICATED, with a text
// that says what to do.
absl::Status Admit(const AdmissionOptions& options, absl::string_view method, const CallCredential& credential);

// Returns credentials for grpc::ServerBuilder::AddListeningPort, for a port or "unix:PATH". A call that is not admitted
// ends with UNAUTHENTICATED and reaches no method.
std::shared_ptr<grpc::ServerCredentials> ListenCredentials(AdmissionOptions options);

// Checks that the call came with the cluster's token, or with the credential of this job. PERMISSION_DENIED: the call
// came with the credential of another job. The call must have been admitted already.
absl::Status CheckJobOfCaller(const grpc::ServerContext& context, absl::string_view job_id);

}  // namespace hooke

#endif  // HOOKE_WIRE_ADMISSION_H_
