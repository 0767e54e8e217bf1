#ifndef HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_
#define HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_

// Writes a job's center as a TorchScript file. This program does not link LibTorch: it pulls the center into a
// safetensors file and has hooke-rank, which trains by the same networks, make the other from it.

#include <string>

#include "absl/status/statusor.h"
#include "client/export/export_center.h"
#include "client/process/interrupts.h"
#include "proto/coordinator.pb.h"

namespace hooke {

// `rank_program`: the path of hooke-rank. `interrupts` is listened to in place of `options.interrupts`. Files that are
// needed on the way lie beside `options.path`, as PATH.part-PID and with endings of their own, and are gone when this
// returns. After an error there is no new file, and one that was there is as it was. The errors of ExportCenter;
// NOT_FOUND: there is no hooke-rank; FAILED_PRECONDITION: the servers do not know what the model is; ABORTED:
// hooke-rank failed, and has said why on stderr.
absl::StatusOr<Exported> ExportTorchScript(const v1::JobStatus& job, const ExportOptions& options,
                                           const std::string& rank_program, Interrupts& interrupts);

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_EXPORT_TORCHSCRIPT_H_
