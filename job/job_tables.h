#ifndef HOOKE_JOB_JOB_TABLES_H_
#define HOOKE_JOB_JOB_TABLES_H_

// The tables of docs/job-file.md, made from the tables of keys and relations. Pure.

#include <string>
#include <vector>

namespace hooke {

// Each table is its header, the line below it and its rows. All lines end in a newline.
std::vector<std::string> JobTables();

// Returns the page with each table replaced by ours with the same header. Tables that the page does not have are left
// out.
std::string WithJobTables(const std::string& page);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_TABLES_H_
