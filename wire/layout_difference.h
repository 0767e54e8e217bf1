#ifndef HOOKE_WIRE_LAYOUT_DIFFERENCE_H_
#define HOOKE_WIRE_LAYOUT_DIFFERENCE_H_

// Where the layout of a center and that of a model part: asked by servers when a group attaches, and by ranks when they
// read a center. Pure.

#include <optional>
#include <string>

#include "proto/parameter_server.pb.h"

namespace hooke {

struct LayoutDifference {
  int parameter = 0;   // Index of the first one that differs.
  std::string center;  // What it is on either side, as Describe says; "none" where a layout has ended.
  std::string model;
};

// Nothing: they have the same parameters in the same order.
std::optional<LayoutDifference> FindDifference(const v1::Layout& center, const v1::Layout& model);

// "fc1.weight float32 [512, 784]".
std::string Describe(const v1::Parameter& parameter);

}  // namespace hooke

#endif  // HOOKE_WIRE_LAYOUT_DIFFERENCE_H_
