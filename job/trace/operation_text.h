#ifndef HOOKE_JOB_TRACE_OPERATION_TEXT_H_
#define HOOKE_JOB_TRACE_OPERATION_TEXT_H_

#include <string>

#include "proto/worker.pb.h"

namespace hooke {

// Returns the operation's name for people, such as "all-reduce".
std::string OperationText(v1::Operation operation);

}  // namespace hooke

#endif  // HOOKE_JOB_TRACE_OPERATION_TEXT_H_
