#ifndef HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_
#define HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_

// Job files for tests.

namespace hooke {

// The sample of the documentation.
constexpr char kSample[] = R"(name: fashion
model: lenet
data: {format: idx, train: fm/train, test: /abs/t10k}
train: {epochs: 4, batch_size: 64, optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}, seed: 1}
groups: {count: 2, ranks: 2}
averaging: {rule: elastic, interval: 16}
)";

// The shortest possible file.
constexpr char kLeast[] = "name: a\nmodel: mlp\ndata: {train: a, test: b}\n";

}  // namespace hooke

#endif  // HOOKE_CLIENT_JOB_FILE_JOB_FILE_SAMPLES_H_
