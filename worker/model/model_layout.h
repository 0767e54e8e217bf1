#ifndef HOOKE_WORKER_MODEL_MODEL_LAYOUT_H_
#define HOOKE_WORKER_MODEL_MODEL_LAYOUT_H_

// The tensors of a model, in the order in which they form the job's vector: first the parameters, then the float
// buffers (batch-norm statistics). Each is row-major, and there are no gaps. Plain values.

#include <cstdint>
#include <string>
#include <vector>

namespace hooke {

struct NamedShape {
  std::string name;
  std::vector<uint64_t> shape;  // Empty: a scalar.

  uint64_t values() const {
    uint64_t product = 1;
    for (uint64_t extent : shape) product *= extent;
    return product;
  }
};

struct ModelLayout {
  std::vector<NamedShape> parameters;  // The parameters, which the optimizer changes.
  // Buffers, which forward passes change instead of the optimizer. They are exchanged with the center, too.
  std::vector<NamedShape> buffers;

  uint64_t parameter_values() const { return Sum(parameters); }
  uint64_t buffer_values() const { return Sum(buffers); }
  uint64_t values() const { return parameter_values() + buffer_values(); }

 private:
  static uint64_t Sum(const std::vector<NamedShape>& shapes) {
    uint64_t sum = 0;
    for (const NamedShape& shape : shapes) sum += shape.values();
    return sum;
  }
};

}  // namespace hooke

#endif  // HOOKE_WORKER_MODEL_MODEL_LAYOUT_H_
