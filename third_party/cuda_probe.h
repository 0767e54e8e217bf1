#ifndef HOOKE_THIRD_PARTY_CUDA_PROBE_H_
#define HOOKE_THIRD_PARTY_CUDA_PROBE_H_

// Does device code compiled by --config=cuda run on this machine? Asked by cuda_probe_test.

#include <string>
#include <vector>

namespace hooke {

// Number of GPUs that the driver shows; 0 with `error` set where there is no driver.
int CudaDevices(std::string* error);

// a[i] + b[i], computed on device 0. Empty on an error, with `error` set.
std::vector<float> SumOnDevice(const std::vector<float>& a, const std::vector<float>& b, std::string* error);

}  // namespace hooke

#endif  // HOOKE_THIRD_PARTY_CUDA_PROBE_H_
