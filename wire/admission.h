#ifndef HOOKE_WIRE_ADMISSION_H_
#define HOOKE_WIRE_ADMISSION_H_

// The one place where a server admits calls. gRPC asks it before it looks for the method: so it sees each call of each
// service, however the method is served, and no method can be forgotten.

#include <grpcpp/grpcpp.h>

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "wire/cluster_token.h"

namespace hooke {

struct AdmissionOptions {
  ClusterToken token;  // Without one, every call is admitted.
  // Paths of the methods that a job's ranks may call with the credential of their job: "/package.Service/Method". Such
  // a method must check with CheckJobOfCaller that the call is about that job, or ask for the job's key.
  std::set<std::string> job_methods;
};

// Whether a call of `method` with this credential is admitted. UNAUTHENTICATED otherwise; the text says what to do.
absl::Status Admit(const AdmissionOptions& options, absl::string_view method, const CallCredential& credential);

// For grpc::ServerBuilder::AddListeningPort, for a port or "unix:PATH". A call that is not admitted ends with
// UNAUTHENTICATED and reaches no method.
std::shared_ptr<grpc::ServerCredentials> ListenCredentials(AdmissionOptions options);

// OK if the call came with the cluster's token, or with the credential of this job. PERMISSION_DENIED: it came with the
// credential of another job. It relies on the call's having been admitted.
absl::Status CheckJobOfCaller(const grpc::ServerContext& context, absl::string_view job_id);

}  // namespace hooke

#endif  // HOOKE_WIRE_ADMISSION_H_
