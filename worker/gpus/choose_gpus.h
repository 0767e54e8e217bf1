#ifndef HOOKE_WORKER_GPUS_CHOOSE_GPUS_H_
#define HOOKE_WORKER_GPUS_CHOOSE_GPUS_H_

// Decides which GPUs each rank of a group gets on its node. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hooke {

// A GPU by the name that CUDA_VISIBLE_DEVICES takes: "0", "GPU-5f1e..." or "MIG-27b1...".
using GpuName = std::string;

// Reads a list of GPUs, "0,1" or "GPU-5f1e...,GPU-8a33...", as CUDA_VISIBLE_DEVICES has it. CUDA takes no name after
// one that names no GPU, such as "-1" or "NoDevFiles", so the list ends there. Spaces around names are left out.
std::vector<GpuName> ParseGpuList(absl::string_view text);

// Returns what is wrong with a list of GPUs that a person has given; "" if nothing is.
std::string GpuListFault(absl::string_view text);

// Reads the output of `nvidia-smi -L`. Of a GPU that is divided (MIG), its parts are returned in its place.
std::vector<GpuName> ParseNvidiaSmi(absl::string_view output);

// Returns the number of GPUs of each slot: an equal share, rounded down. With more slots than GPUs it is 1, and several
// ranks share a GPU. 0: there is no GPU.
uint32_t GpusOfASlot(size_t gpus, uint32_t slots);

// Chooses `each` GPUs for each of `ranks` ranks, or all GPUs if there are fewer. `users` has the number of ranks that
// each GPU serves now. Returns for each rank the indices of its GPUs, ascending: each time those with the fewest users,
// of equal ones the first.
std::vector<std::vector<size_t>> ChooseGpus(std::vector<uint32_t> users, uint32_t each, uint32_t ranks);

// Says who got which GPUs on the worker, in one line for the job's log. `shared`: some GPU serves several ranks.
std::string SayGpus(absl::Span<const std::vector<GpuName>> gpus_of_rank, absl::string_view worker, uint32_t first_rank,
                    bool shared);

}  // namespace hooke

#endif  // HOOKE_WORKER_GPUS_CHOOSE_GPUS_H_
