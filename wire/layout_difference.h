#ifndef HOOKE_WIRE_LAYOUT_DIFFERENCE_H_
#define HOOKE_WIRE_LAYOUT_DIFFERENCE_H_

// Finds the first difference between the layouts of a center and a model. Servers compare them when a group attaches,
// and ranks when they read a center. Pure.

#include <optional>
#include <string>

#include "proto/parameter_server.pb.h"

namespace hooke {

struct LayoutDifference {
  int parameter = 0;   // Index of the first parameter that differs.
  std::string center;  // The parameter on each side, as Describe returns it; "none" if that layout has ended.
  std::string model;
};

// Returns the first difference, or nullopt if the layouts have the same parameters in the same order.
std::optional<LayoutDifference> FindDifference(const v1::Layout& center, const v1::Layout& model);

// Returns a parameter as text, such as "fc1.weight float32 [512, 784]".
std::string Describe(const v1::Parameter& parameter);

}  // namespace hooke

#endif  // HOOKE_WIRE_LAYOUT_DIFFERENCE_H_
