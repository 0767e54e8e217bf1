// Tests how findings are shown.
#include "client/doctor/finding.h"

#include <gtest/gtest.h>

namespace hooke {
namespace {

const Findings kSome = {Ok("cores", "2 CPUs"),
                        Warning("host name", "\"vm\" does\x1bnot resolve", {"edit it", "or not"}),
                        Fault("MPI", "no mpirun", {"install it"})};

// Each finding is a line, with its advice below. Text from programs cannot steer the terminal.
TEST(FindingTest, Text) {
  EXPECT_EQ(FindingsText(kSome, false),
            "ok       cores      2 CPUs\n"
            "warning  host name  \"vm\" does not resolve\n"
            "                    -> edit it\n"
            "                    -> or not\n"
            "fault    MPI        no mpirun\n"
            "                    -> install it\n"
            "1 fault, 1 warning\n");
  EXPECT_EQ(FindingsText({}, false), "no fault, no warning\n");
  EXPECT_EQ(FindingsText({Fault("a", "b", {})}, true), "\x1b[31mfault  \x1b[0m  a  b\n1 fault, no warning\n");
}

TEST(FindingTest, Json) {
  const nlohmann::ordered_json json = FindingsToJson(kSome);
  EXPECT_EQ(json["faults"], 1);
  EXPECT_EQ(json["warnings"], 1);
  EXPECT_EQ(json["findings"][2].dump(),
            R"({"check":"MPI","level":"fault","found":"no mpirun","advice":["install it"]})");
}

TEST(FindingTest, AnyFault) {
  EXPECT_TRUE(AnyFault(kSome));
  EXPECT_FALSE(AnyFault({kSome[0], kSome[1]}));
}

}  // namespace
}  // namespace hooke
