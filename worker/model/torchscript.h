#ifndef HOOKE_WORKER_MODEL_TORCHSCRIPT_H_
#define HOOKE_WORKER_MODEL_TORCHSCRIPT_H_

// A trained model as a TorchScript file, which needs neither Hooke nor the network's source: `torch.jit.load` reads it
// in Python, `torch::jit::load` in C++. docs/export.md says how it is used. `hooke export` runs hooke-rank for it,
// because the `hooke` command does not link LibTorch.

#include <string>

#include "absl/status/status.h"
#include "worker/model/model_file.h"

namespace hooke {

// Writes the file. The module maps raw images to scores: the normalization of the model's training is part of it. The
// network is traced from networks.h, so it computes what training computed.
// INVALID_ARGUMENT: the metadata do not describe the model, or the tensors are not those of the network.
// FAILED_PRECONDITION: this program does not build that version of the network, or the file cannot be written. After an
// error a part of the file may be there.
absl::Status WriteTorchScript(const ModelFile& model, const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_TORCHSCRIPT_H_
