#ifndef HOOKE_JOB_JOB_TABLES_H_
#define HOOKE_JOB_JOB_TABLES_H_

// The tables of docs/job-file.md, made from the tables of keys and relations. Pure.

#include <string>
#include <vector>

namespace hooke {

// Returns the tables. Each is its header, the line below the header and its rows. All lines end in a newline.
std::vector<std::string> JobTables();

// Returns the page, with each of its tables replaced by the table of JobTables() that has the same header. Tables that
// the page does not have are not added.
std::string WithJobTables(const std::string& page);

}  // namespace hooke

#endif  // HOOKE_JOB_JOB_TABLES_H_
