#ifndef HOOKE_THIRD_PARTY_CUDA_PROBE_H_
#define HOOKE_THIRD_PARTY_CUDA_PROBE_H_

// Checks that device code compiled by --config=cuda runs on this machine.

#include <string>
#include <vector>

namespace hooke {

// Returns the number of GPUs that the driver reports. Returns 0 and sets `error` if there is no driver.
int CudaDevices(std::string* error);

// Returns the sums a[i] + b[i], computed on device 0. After an error returns an empty vector and sets `error`.
std::vector<float> SumOnDevice(const std::vector<float>& a, const std::vector<float>& b, std::string* error);

}  // namespace hooke

#endif  // HOOKE_THIRD_PARTY_CUDA_PROBE_H_
