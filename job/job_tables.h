#ifndef HOOKE_JOB_JOB_TABLES_H_
#define HOOKE_JOB_JOB_TABLES_H_

// The tables of docs/job-file.md, as the code has them. Pure.

#include <string>
#include <vector>

namespace hooke {

// Each table is its header, the line below it, and its rows; all end in a newline.
std::vector<std::string> JobTables();

// The page with each table in the place of the one with the same header. A table that the page does not have is left
// out.
std::string WithJobTables(const std::string& page);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_TABLES_H_
