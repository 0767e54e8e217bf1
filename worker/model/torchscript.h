#ifndef HOOKE_WORKER_MODEL_TORCHSCRIPT_H_
#define HOOKE_WORKER_MODEL_TORCHSCRIPT_H_

// Writes a trained model as a TorchScript file, which needs neither Hooke nor the network's source. `torch.jit.load`
// reads it in Python, and `torch::jit::load` in C++. docs/export.md says how to use it. `hooke export` runs hooke-rank
// to write it, because the `hooke` command does not link LibTorch.

#include <string>

#include "absl/status/status.h"
#include "worker/model/model_file.h"

namespace hooke {

// Writes a module that maps raw images to scores; it also does the normalization of the model's training. The network
// is traced from networks.h, so it computes the same as in training. INVALID_ARGUMENT: the metadata do not describe the
// model, or the tensors are not those of the network. FAILED_PRECONDITION: this program does not build that version of
// the network, or the file cannot be written. INTERNAL: LibTorch failed. After an error a part of the file may exist.
absl::Status WriteTorchScript(const ModelFile& model, const std::string& path);

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_TORCHSCRIPT_H_
