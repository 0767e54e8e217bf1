#include "wire/admission.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "wire/channel.h"

namespace hooke {
namespace {

absl::string_view TextOf(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

// The parts of a call's metadata that admission reads.
struct CallHeaders {
  std::string method;
  CallCredential credential;
  // Whether a part of the credential occurs twice. Another reader of the metadata might then see the other value.
  bool repeated = false;
};

CallHeaders HeadersOf(const grpc_metadata* metadata, size_t count) {
  CallHeaders headers;
  int secrets = 0;
  int jobs = 0;
  for (const grpc_metadata* entry = metadata; entry != metadata + count; ++entry) {
    const absl::string_view key = TextOf(entry->key);
    const absl::string_view value = TextOf(entry->value);
    if (key == ":path") headers.method = std::string(value);
    if (key == kAuthorizationKey) {
      headers.credential.secret = std::string(absl::StripPrefix(value, "Bearer "));
      ++secrets;
    }
    if (key == kJobKey) {
      headers.credential.job_id = std::string(value);
      ++jobs;
    }
  }
  headers.repeated = secrets > 1 || jobs > 1;
  return headers;
}

// Credentials of a port that admit calls by their metadata. gRPC's C++ interface lets only encrypted ports examine
// metadata, so this class uses the C interface.
class AdmittingCredentials final : public grpc::ServerCredentials {
 public:
  explicit AdmittingCredentials(AdmissionOptions options)
      : options_(std::make_shared<const AdmissionOptions>(std::move(options))) {}

  // Ignored, because only the options decide which calls are admitted.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  using State = std::shared_ptr<const AdmissionOptions>;

  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const plain = grpc_insecure_server_credentials_create();
    grpc_server_credentials_set_auth_metadata_processor(plain, {Process, Destroy, new State(options_)});
    const int port = grpc_server_add_http2_port(server, address.c_str(), plain);
    grpc_server_credentials_release(plain);
    return port;
  }

  static void Process(void* state, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                      grpc_process_auth_metadata_done_cb done, void* user_data) {
    const CallHeaders headers = HeadersOf(metadata, count);
    const absl::Status status = headers.repeated
                                    ? absl::UnauthenticatedError("the call has two credentials: send one")
                                    : Admit(**static_cast<State*>(state), headers.method, headers.credential);
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         std::string(status.message()).c_str());
  }
  static void Destroy(void* state) { delete static_cast<State*>(state); }

  const State options_;
};

}  // namespace

absl::Status Admit(const AdmissionOptions& options, absl::string_view method, const CallCredential& credential) {
  if (options.token.empty()) return absl::OkStatus();
  if (credential.secret.empty()) {
    return absl::UnauthenticatedError("this cluster wants a token: give --token-file, or set HOOKE_TOKEN_FILE");
  }
  if (!options.token.Made(credential)) {
    return absl::UnauthenticatedError(
        "this is not the token of this cluster: --token-file must hold the same token on every program of it");
  }
  if (credential.job_id.empty() || options.job_methods.count(std::string(method)) > 0) return absl::OkStatus();
  return absl::UnauthenticatedError(
      absl::StrCat("the credential of job ", credential.job_id, " is not enough for ", method,
                   ", which wants the cluster's token: give --token-file, or set HOOKE_TOKEN_FILE"));
}

std::shared_ptr<grpc::ServerCredentials> ListenCredentials(AdmissionOptions options) {
  if (options.token.empty()) return grpc::InsecureServerCredentials();
  return std::make_shared<AdmittingCredentials>(std::move(options));
}

absl::Status CheckJobOfCaller(const grpc::ServerContext& context, absl::string_view job_id) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(kJobKey);
  if (found == metadata.end()) return absl::OkStatus();
  const absl::string_view job(found->second.data(), found->second.size());
  if (job == job_id) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat("the credential of job ", job, " is not good for job ", job_id,
                                                  ": ranks reach their own center only"));
}

}  // namespace hooke
