#include "mpi_group/scale/fit_link.h"

#include <cmath>
#include <limits>

#include "mpi_group/choose_algorithm.h"

namespace hooke {
namespace {

double ErrorOf(const std::vector<MeasuredAllReduce>& measured, const LinkCost& link) {
  double sum = 0;
  for (const MeasuredAllReduce& one : measured) {
    const double error = std::log(ModelSeconds(one, link) / one.seconds);
    sum += error * error;
  }
  return sum;
}

struct Fit {
  LinkCost link;
  double error = std::numeric_limits<double>::infinity();
};

// Multiplies each cost by a factor, its inverse or 1, in all combinations, as long as that helps; then by a smaller
// factor. Combinations are needed, because more latency and less overhead often give almost the same times.
Fit FitFrom(const LinkCost& first, const std::vector<MeasuredAllReduce>& measured) {
  LinkCost best = first;
  double least = ErrorOf(measured, best);
  for (double factor = 2; factor > 1.0005;) {
    const LinkCost start = best;
    const double before = least;
    for (double latency : {1.0, factor, 1 / factor}) {
      for (double overhead : {1.0, factor, 1 / factor}) {
        for (double per_byte : {1.0, factor, 1 / factor}) {
          const LinkCost other = {start.latency * latency, start.overhead * overhead, start.per_byte * per_byte};
          const double error = ErrorOf(measured, other);
          if (error >= least) continue;
          least = error;
          best = other;
        }
      }
    }
    if (least == before) factor = std::sqrt(factor);
  }
  return {best, least};
}

}  // namespace

double ModelSeconds(const MeasuredAllReduce& measured, const LinkCost& link) {
  const Topology topology = {measured.nodes, measured.nodes, 1, 1, true, false};
  const Choice choice = ChooseAlgorithm(topology, {Operation::kAllReduce, measured.bytes});
  return AllReduceSeconds(choice.algorithm, {measured.nodes, measured.bytes, choice.chunk_bytes}, link);
}

// Runs the local search from 27 starting points. Once a search has made a cost so small that it no longer changes the
// error, no step brings it back.
LinkCost FitLink(const std::vector<MeasuredAllReduce>& measured) {
  Fit best;
  for (double latency : {3e-6, 30e-6, 300e-6}) {
    for (double overhead : {1e-6, 10e-6, 100e-6}) {
      for (double per_byte : {0.1e-9, 1e-9, 10e-9}) {
        const Fit fit = FitFrom({latency, overhead, per_byte}, measured);
        if (fit.error < best.error) best = fit;
      }
    }
  }
  return best.link;
}

}  // namespace hooke
