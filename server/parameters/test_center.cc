#include "server/parameters/test_center.h"

namespace hooke {

v1::AttachRequest MakeAttachRequest(const TestCenter& center, uint32_t group, uint32_t incarnation) {
  v1::AttachRequest request;
  *request.mutable_sender() = MakeSender(center, group, 0, incarnation);
  request.mutable_job()->set_job_key(center.job_key);
  request.mutable_job()->set_rule(v1::AveragingSpec::ELASTIC);
  request.mutable_job()->set_alpha(center.alpha);
  request.mutable_job()->set_compression(center.compression);
  request.mutable_job()->set_groups(center.groups);
  request.mutable_job()->set_ranks(center.ranks);
  request.mutable_job()->set_shard_index(center.shard_index);
  request.mutable_job()->set_shard_count(center.shard_count);
  request.mutable_job()->set_first_incarnation(center.first_incarnation);
  request.mutable_job()->set_first_step(center.first_step);
  v1::Parameter* parameter = request.mutable_layout()->add_parameters();
  parameter->set_name("w");
  parameter->set_type(v1::Parameter::FLOAT32);
  parameter->add_shape(center.values);
  return request;
}

v1::AttachRequest MakeStepRequest(const TestCenter& center, v1::AveragingSpec::Rule rule, double learning_rate) {
  v1::AttachRequest request = MakeAttachRequest(center);
  v1::JobSpecForShard& job = *request.mutable_job();
  job.set_rule(rule);
  job.set_interval(1);
  job.set_quorum(1);
  job.set_epochs(1);
  job.set_steps_per_epoch(100);
  job.set_parameters(center.values);
  job.mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  job.mutable_optimizer()->set_learning_rate(learning_rate);
  job.mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  return request;
}

v1::Sender MakeSender(const TestCenter& center, uint32_t group, uint32_t rank, uint32_t incarnation) {
  v1::Sender sender;
  sender.set_job_id(center.job_id);
  sender.set_group(group);
  sender.set_rank(rank);
  sender.set_incarnation(incarnation);
  sender.set_job_key(center.job_key);
  return sender;
}

v1::Sender SenderOf(const std::string& job_id) {
  TestCenter center;
  center.job_id = job_id;
  return MakeSender(center);
}

std::vector<float> Ramp(uint64_t first, uint64_t count, float shift) {
  std::vector<float> values(count);
  for (uint64_t i = 0; i < count; ++i) values[i] = static_cast<float>(first + i) / 8 + shift;
  return values;
}

}  // namespace hooke
