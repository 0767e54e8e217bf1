#ifndef HOOKE_JOB_COMMAND_H_
#define HOOKE_JOB_COMMAND_H_

// The program of a job that has a command instead of a built-in network: what is allowed in it, and its text for
// people. Pure.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace hooke {

constexpr size_t kArgumentsMax = 256;
constexpr size_t kVariablesMax = 256;
// Limit for all arguments together, and for all variables together. Each counts one byte more, for its end.
constexpr size_t kCommandBytesMax = 32 << 10;

// Whether the ranks of this job are a program of the user.
bool HasCommand(const v1::JobSpec& job);

// The messages of INVALID_ARGUMENT say the fault: "argument 3 has a NUL byte".
absl::Status CheckArguments(absl::Span<const std::string> arguments);
// `variables` are "NAME=value". A name that Hooke, an MPI library or a scheduler sets for each rank is refused.
absl::Status CheckVariables(absl::Span<const std::string> variables);

// The arguments as a shell takes them, in one line without control characters. A text of more than `bytes_max` bytes is
// cut and ends in "...". Returns "" if there are no arguments.
std::string CommandText(absl::Span<const std::string> arguments, size_t bytes_max = 80);

// Returns the name of the built-in network, for instance "lenet", or the command's text.
std::string TrainedText(const v1::JobSpec& job);

}  // namespace hooke

#endif  // HOOKE_JOB_COMMAND_H_
