#include "job/history_csv.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hooke {
namespace {

v1::HistoryPoint Point(int64_t seconds, uint64_t step, double loss) {
  v1::HistoryPoint point;
  point.set_unix_ms(1000 * seconds);
  point.set_step(step);
  point.set_loss(loss);
  return point;
}

// If a point does not have a value, its cell is empty. A job's name may have any characters.
TEST(HistoryCsvTest, ARowForEachPoint) {
  v1::HistoryPoint full = Point(3, 3, 0.1);
  full.set_group(1);
  full.set_epoch(0.25);
  full.set_samples_per_s(1234.5);
  full.set_exchange_ms(1.0 / 3);
  full.set_center_distance(0.0625);
  full.set_staleness(1.5);
  full.set_computing_ms(2500);
  full.set_exchanging_ms(7);
  v1::HistoryPoint lost = Point(4, 4, std::nan(""));
  lost.set_group(2);
  v1::HistoryPoint center = Point(5, 5, 0.5);
  center.set_accuracy(0.875);
  EXPECT_EQ(HistoryCsv("a,\"b\"-1", {full, lost, center}),
            "job,series,group,time_unix_ms,step,epoch,loss,samples_per_s,exchange_ms,accuracy_fraction,center_distance,"
            "staleness,compute_s,collective_s,exchange_s\r\n"
            "\"a,\"\"b\"\"-1\",group,1,3000,3,0.25,0.1,1234.5,0.3333333333333333,,0.0625,1.5,2.5,0,0.007\r\n"
            "\"a,\"\"b\"\"-1\",group,2,4000,4,0,nan,0,,,,,,,\r\n"
            "\"a,\"\"b\"\"-1\",center,,5000,5,0,0.5,,,0.875,,,,,\r\n");
}

}  // namespace
}  // namespace hooke
