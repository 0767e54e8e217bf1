#ifndef HOOKE_CLIENT_EXPORT_EXPORT_METADATA_H_
#define HOOKE_CLIENT_EXPORT_EXPORT_METADATA_H_

// The metadata of an exported file: facts of the model and of the job that trained it. docs/export.md lists the keys.
// Pure.

#include "client/export/safetensors.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// `layout`: as a server of the job's center sent it, in range. Facts that are not known have no key: without a
// description of the model in the layout, those of its input; before the first evaluation, the accuracy.
Metadata ExportMetadata(const v1::JobStatus& job, const v1::Layout& layout);

}  // namespace hooke

#endif  // HOOKE_CLIENT_EXPORT_EXPORT_METADATA_H_
