#ifndef HOOKE_WORKER_RANK_IDX_DATASET_H_
#define HOOKE_WORKER_RANK_IDX_DATASET_H_

// A labelled image set in MNIST's IDX format, read whole into memory. Made once by each rank; immutable afterwards, so
// thread-safe.
//
// Format (http://yann.lecun.com/exdb/mnist): big-endian uint32 magic 0x00000803, images, rows, columns, then one byte
// per pixel; labels: magic 0x00000801, labels, then one byte per label.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace hooke {

struct IdxOptions {
  // "<prefix>-images-idx3-ubyte" and "<prefix>-labels-idx1-ubyte" are read; where one does not exist, the same with
  // ".gz".
  std::string prefix;
  uint32_t classes = 10;                    // Labels are 0 to classes - 1.
  uint64_t pixels_max = uint64_t{1} << 34;  // A larger set is refused: pixels are kept in memory, a byte each.
};

// What turns pixels into inputs: (pixel / 255 - mean) / deviation.
struct Normalization {
  double mean = 0;
  double deviation = 1;
};

class IdxDataset {
 public:
  // NOT_FOUND: no such file (both names are in the message). FAILED_PRECONDITION: it cannot be opened.
  // INVALID_ARGUMENT: the files are not what they should be (other magic, no images, counts that differ, a label out of
  // range). DATA_LOSS: cut short, longer than its header says, or corrupt. None of these goes away by trying again.
  // Memory is taken as data arrives, never on a header's word.
  static absl::StatusOr<IdxDataset> Load(const IdxOptions& options);

  uint64_t size() const { return labels_.size(); }  // Images; >= 1.
  uint32_t rows() const { return rows_; }
  uint32_t columns() const { return columns_; }
  uint64_t image_values() const { return uint64_t{rows_} * columns_; }

  absl::Span<const uint8_t> image(uint64_t index) const {
    return absl::MakeConstSpan(pixels_).subspan(index * image_values(), image_values());
  }
  uint8_t label(uint64_t index) const { return labels_[index]; }

  // Mean and standard deviation of this set's pixels over [0, 1] (deviation 1 where all are equal).
  const Normalization& normalization() const { return normalization_; }

  // Writes the images `indices` (each < size()), normalized, one after another; `to` has indices.size() *
  // image_values() values. A test set is normalized with the training set's numbers.
  void WriteImages(absl::Span<const uint32_t> indices, const Normalization& normalization, absl::Span<float> to) const;
  // Writes their labels; `to` has indices.size() values.
  void WriteLabels(absl::Span<const uint32_t> indices, absl::Span<int64_t> to) const;

 private:
  IdxDataset() = default;

  uint32_t rows_ = 0;
  uint32_t columns_ = 0;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
  Normalization normalization_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_RANK_IDX_DATASET_H_
