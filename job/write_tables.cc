// Writes the tables of a job's keys into a page: `bazel run //job:write_tables -- "$PWD/docs/job-file.md"`.

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "job/job_tables.h"

int main(int argc, char** argv) {
  std::ifstream in(argc == 2 ? argv[1] : "");
  if (!in) {
    std::cerr << "name the page, with its whole path: job-file.md\n";
    return 2;
  }
  const std::string page{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  in.close();
  std::ofstream out(argv[1]);
  out << hooke::WithJobTables(page) << std::flush;
  return out ? 0 : 1;
}
