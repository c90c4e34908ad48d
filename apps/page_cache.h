// What the system keeps of files in memory.
#pragma once

#include <string>

namespace strata::apps {

// Asks the system to forget the file's pages. False where any stays, as it does in a file system
// that is memory or where another program maps it, and where the system does not tell.
bool drop_pages(const std::string& path);

}  // namespace strata::apps
