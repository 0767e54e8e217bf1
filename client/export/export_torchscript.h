#ifndef HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_
#define HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_

// Writes a job's center as a TorchScript file. This program does not link LibTorch. So it writes the center to a
// safetensors file first. hooke-rank, which has the networks, makes the TorchScript file from that.

#include <string>

#include "absl/status/statusor.h"
#include "client/export/export_center.h"
#include "client/process/interrupts.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// `rank_program` is the path of hooke-rank. `interrupts` replaces `options.interrupts`. Temporary files are beside
// `options.path`, named PATH.part-PID and so on, and are gone on return. After an error there is no new file, and an
// old one is unchanged.
//
// Errors are those of ExportCenter, and also these. NOT_FOUND: there is no hooke-rank. FAILED_PRECONDITION: the servers
// have no description of the model. ABORTED: hooke-rank failed, and has said why on stderr.
absl::StatusOr<Exported> ExportTorchScript(const v1::JobStatus& job, const ExportOptions& options,
                                           const std::string& rank_program, Interrupts& interrupts);

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_
