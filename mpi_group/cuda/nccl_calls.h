#ifndef HOOKE_MPI_GROUP_CUDA_NCCL_CALLS_H_
#define HOOKE_MPI_GROUP_CUDA_NCCL_CALLS_H_

// The functions of NCCL, found while the program runs. So one program runs on machines with NCCL and without, and a
// test can pass functions of its own.

#include <nccl.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hooke {

struct NcclCalls {
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduce) reduce = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  // Null if the library is older than NCCL 2.19.
  decltype(&ncclMemAlloc) mem_alloc = nullptr;
  decltype(&ncclMemFree) mem_free = nullptr;
  decltype(&ncclCommRegister) comm_register = nullptr;
  decltype(&ncclCommDeregister) comm_deregister = nullptr;
};

// Loads NCCL. `library` is a name, which the system looks for as for any shared library, or a path, which contains a
// slash. FAILED_PRECONDITION: it is not there or is older than NCCL 2.14; the message says where it was looked for and
// what to do. A library that was loaded stays loaded until the process ends.
absl::StatusOr<NcclCalls> LoadNccl(const std::string& library = "libnccl.so.2");

// Converts a code of NCCL; the message is `what` and NCCL's own. ncclInProgress counts as OK: the group's communicators
// are non-blocking, and the group waits for their work with a deadline.
absl::Status NcclStatus(const NcclCalls& nccl, ncclResult_t code, absl::string_view what);

}  // namespace hooke

#endif  // HOOKE_MPI_GROUP_CUDA_NCCL_CALLS_H_
