#include "server/cluster/example_job.h"

namespace hooke {

v1::JobSpec ExampleJob(ExampleGroups groups) {
  v1::JobSpec job;
  job.set_name("fashion");
  job.mutable_model()->set_name("lenet");
  job.mutable_data()->set_format(v1::DataSpec::FORMAT_IDX);
  job.mutable_data()->set_train("/data/train");
  job.mutable_data()->set_test("/data/t10k");
  v1::TrainSpec* train = job.mutable_train();
  train->set_epochs(4);
  train->set_batch_size(64);
  train->set_seed(1);
  train->mutable_optimizer()->set_name(v1::OptimizerSpec::SGD);
  train->mutable_optimizer()->set_learning_rate(0.05);
  train->mutable_optimizer()->set_momentum(0.9);
  train->mutable_schedule()->set_name(v1::ScheduleSpec::CONSTANT);
  job.mutable_groups()->set_count(groups.count);
  job.mutable_groups()->set_ranks(groups.ranks);
  job.mutable_averaging()->set_rule(v1::AveragingSpec::ELASTIC);
  job.mutable_averaging()->set_interval(16);
  job.mutable_averaging()->set_alpha(0.3);
  job.mutable_collectives()->set_aggregation(v1::CollectivesSpec::ALLREDUCE);
  job.mutable_collectives()->set_order(v1::CollectivesSpec::CHAINED);
  job.mutable_collectives()->set_bucket_mib(1);
  return job;
}

v1::SubmitRequest ExampleSubmission(const std::string& submission_id, ExampleGroups groups) {
  v1::SubmitRequest request;
  request.set_submission_id(submission_id);
  *request.mutable_job() = ExampleJob(groups);
  return request;
}

}  // namespace hooke
