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
  // The files are "<prefix>-images-idx3-ubyte" and "<prefix>-labels-idx1-ubyte". If one does not exist, the same name
  // with ".gz" is read.
  std::string prefix;
  uint32_t classes = 10;  // Labels are 0 to classes - 1.
  // Most pixels in a set. Larger sets are refused, because each pixel takes a byte of memory.
  uint64_t pixels_max = uint64_t{1} << 34;
};

// The largest value of a pixel; pixels are bytes.
inline constexpr double kPixelMax = 255;

// Turns pixels into inputs: (pixel / kPixelMax - mean) / deviation.
struct Normalization {
  double mean = 0;
  double deviation = 1;
};

// Turns pixels into inputs in float32, as training computes it: pixel * factor + offset.
struct PixelScale {
  float factor = 1;
  float offset = 0;
};
PixelScale ScaleOf(const Normalization& normalization);

// The content of a whole set in memory.
struct IdxContent {
  uint32_t rows = 0;
  uint32_t columns = 0;
  std::vector<uint8_t> pixels;  // Image after image, row by row.
  std::vector<uint8_t> labels;  // One for each image.
  Normalization normalization;  // Mean and deviation of these pixels.
};

class IdxDataset {
 public:
  // Reads a set. Trying again after an error does not help.
  //   NOT_FOUND            A file does not exist; the message has both names that were tried.
  //   FAILED_PRECONDITION  A file cannot be opened or read.
  //   INVALID_ARGUMENT     The magic is wrong, there are no images or too many, counts differ, or a label is out of
  //                        range.
  //   DATA_LOSS            A file is cut short, longer than its header says, or corrupt.
  //   RESOURCE_EXHAUSTED   There is no memory to read a file.
  // Memory is taken as data arrives, whatever a header promises.
  static absl::StatusOr<IdxDataset> Load(const IdxOptions& options);

  // Makes a set from the content of another set, moved by Take() or copied.
  explicit IdxDataset(IdxContent content) : content_(std::move(content)) {}

  // Moves the content out of this set, which must not be used again.
  IdxContent Take() && { return std::move(content_); }

  uint64_t size() const { return content_.labels.size(); }  // Images; >= 1.
  uint32_t rows() const { return content_.rows; }
  uint32_t columns() const { return content_.columns; }
  uint64_t image_values() const { return uint64_t{rows()} * columns(); }

  absl::Span<const uint8_t> image(uint64_t index) const {
    return absl::MakeConstSpan(content_.pixels).subspan(index * image_values(), image_values());
  }
  uint8_t label(uint64_t index) const { return content_.labels[index]; }

  // Mean and standard deviation of this set's pixels, scaled to [0, 1]. The deviation is 1 if all pixels are equal.
  const Normalization& normalization() const { return content_.normalization; }

  // Writes the images `indices` (each < size()), normalized, one after another. `to` has indices.size() *
  // image_values() values. A test set is normalized with the training set's numbers.
  void WriteImages(absl::Span<const uint32_t> indices, const Normalization& normalization, absl::Span<float> to) const;
  // Writes the labels of the samples `indices`; `to` has indices.size() values.
  void WriteLabels(absl::Span<const uint32_t> indices, absl::Span<int64_t> to) const;

 private:
  IdxContent content_;
};

}  // namespace hooke

#endif  // HOOKE_WORKER_DATA_IDX_DATASET_H_
