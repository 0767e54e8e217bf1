#ifndef HOOKE_JOB_MODEL_FILE_EXPORT_METADATA_H_
#define HOOKE_JOB_MODEL_FILE_EXPORT_METADATA_H_

// The metadata of an exported file: facts about the model and the job that trained it. docs/export.md lists the keys.
// Pure.

#include "job/model_file/safetensors_header.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace hooke {

// Returns the metadata. `layout` is the checked layout from a server of the job. Unknown facts have no key. Facts about
// the input are unknown if the layout does not describe the model; the accuracy is unknown before the first evaluation.
Metadata ExportMetadata(const v1::JobStatus& job, const v1::Layout& layout);

}  // namespace hooke

#endif  // HOOKE_JOB_MODEL_FILE_EXPORT_METADATA_H_
