#ifndef HOOKE_WORKER_DATA_IDX_DATASET_H_
#define HOOKE_WORKER_DATA_IDX_DATASET_H_

// A labelled image set in MNIST's IDX format, read whole into memory. Immutable once it is made, so thread-safe. The
// ranks of a group read it together: group_dataset.h.
//
// Format (http://yann.lecun.com/exdb/mnist): big-endian uint32 magic 0x00000803, images, rows, columns, then one byte
// per pixel; labels: magic 0x00000801, labels, then one byte per label.

#include <cstdint>
#include <string>
#include <utility>
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

// The largest value of a pixel, which is a byte.
inline constexpr double kPixelMax = 255;

// What turns pixels into inputs: (pixel / kPixelMax - mean) / deviation.
struct Normalization {
  double mean = 0;
  double deviation = 1;
};

// The same as one product and one sum: what training computes, in float32.
struct PixelScale {
  float factor = 1;
  float offset = 0;
};
PixelScale ScaleOf(const Normalization& normalization);

// A set as memory holds it.
struct IdxContent {
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<uint8_t> pixels;  // Of one image after another, row by row.
  std::vector<uint8_t> labels;  // One for each image.
  Normalization normalization;  // Of these pixels.
};

class IdxDataset {
 public:
  // NOT_FOUND: no such file (both names are in the message). FAILED_PRECONDITION: it cannot be opened.
  // INVALID_ARGUMENT: the files are not what they should be (other magic, no images, counts that differ, a label out of
  // range). DATA_LOSS: cut short, longer than its header says, or corrupt. None of these goes away by trying again.
  // Memory is taken as data arrives, never on a header's word.
  static absl::StatusOr<IdxDataset> Load(const IdxOptions& options);

  // `content` is what Take() of another set gave, or a copy of that.
  explicit IdxDataset(IdxContent content) : content_(std::move(content)) {}

  // The set as memory holds it, taken out of this one, which is not used again.
  IdxContent Take() && { return std::move(content_); }

  uint64_t size() const { return content_.labels.size(); }  // Images; >= 1.
  uint32_t rows() const { return content_.rows; }
  uint32_t columns() const { return content_.columns; }
  uint64_t image_values() const { return uint64_t{rows()} * columns(); }

  absl::Span<const uint8_t> image(uint64_t index) const {
    return absl::MakeConstSpan(content_.pixels).subspan(index * image_values(), image_values());
  }
  uint8_t label(uint64_t index) const { return content_.labels[index]; }

  // Mean and standard deviation of this set's pixels over [0, 1] (deviation 1 where all are equal).
  const Normalization& normalization() const { return content_.normalization; }

  // Writes the images `indices` (each < size()), normalized, one after another; `to` has indices.size() *
  // image_values() values. A test set is normalized with the training set's numbers.
  void WriteImages(absl::Span<const uint32_t> indices, const Normalization& normalization, absl::Span<float> to) const;
  // Writes their labels; `to` has indices.size() values.
  void WriteLabels(absl::Span<const uint32_t> indices, absl::Span<int64_t> to) const;

 private:
  IdxContent content_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_IDX_DATASET_H_
