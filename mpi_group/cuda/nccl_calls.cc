#include "mpi_group/cuda/nccl_calls.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace hooke {
namespace {

// Sets `function` to the library's function `name`. If there is none, `function` is null.
template <typename Function>
void Find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// As Find(). If there is none, `missing` becomes its name.
template <typename Function>
void FindNeeded(void* library, const char* name, Function& function, std::string& missing) {
  Find(library, name, function);
  if (function == nullptr) missing = name;
}

std::string PlacesOf(const std::string& library) {
  if (library.find('/') != std::string::npos) return "at this path";
  return "in the folders of LD_LIBRARY_PATH, in those where the build found NCCL, and in the system's";
}

}  // namespace

absl::StatusOr<NcclCalls> LoadNccl(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const reason = dlerror();
    return absl::FailedPreconditionError(absl::StrCat(
        "NCCL: could not load ", library, ": ", reason == nullptr ? "unknown error" : reason, ". It was looked for ",
        PlacesOf(library),
        ". Install NCCL (the package libnccl2, or nvidia-nccl-cu13 of PyPI), or add its folder to LD_LIBRARY_PATH"));
  }
  NcclCalls nccl;
  std::string missing;
  FindNeeded(handle, "ncclGetErrorString", nccl.get_error_string, missing);
  FindNeeded(handle, "ncclGetUniqueId", nccl.get_unique_id, missing);
  FindNeeded(handle, "ncclCommInitRankConfig", nccl.comm_init_rank_config, missing);
  FindNeeded(handle, "ncclCommFinalize", nccl.comm_finalize, missing);
  FindNeeded(handle, "ncclCommDestroy", nccl.comm_destroy, missing);
  FindNeeded(handle, "ncclCommAbort", nccl.comm_abort, missing);
  FindNeeded(handle, "ncclCommGetAsyncError", nccl.comm_get_async_error, missing);
  FindNeeded(handle, "ncclGroupStart", nccl.group_start, missing);
  FindNeeded(handle, "ncclGroupEnd", nccl.group_end, missing);
  FindNeeded(handle, "ncclAllReduce", nccl.all_reduce, missing);
  FindNeeded(handle, "ncclReduce", nccl.reduce, missing);
  FindNeeded(handle, "ncclBroadcast", nccl.broadcast, missing);
  FindNeeded(handle, "ncclAllGather", nccl.all_gather, missing);
  FindNeeded(handle, "ncclReduceScatter", nccl.reduce_scatter, missing);
  Find(handle, "ncclMemAlloc", nccl.mem_alloc);
  Find(handle, "ncclMemFree", nccl.mem_free);
  Find(handle, "ncclCommRegister", nccl.comm_register);
  Find(handle, "ncclCommDeregister", nccl.comm_deregister);
  if (missing.empty()) return nccl;
  return absl::FailedPreconditionError(
      absl::StrCat("NCCL: ", library, " has no function ", missing, ". Install NCCL 2.14 or newer"));
}

absl::Status NcclStatus(const NcclCalls& nccl, ncclResult_t code, absl::string_view what) {
  if (code == ncclSuccess || code == ncclInProgress) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(what, ": ", nccl.get_error_string(code)));
}

}  // namespace hooke
