// Runs another program and takes what it writes.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/status.h"

namespace strata::apps {

// What `arguments`, the first of them a path, wrote to standard output. Fails, saying the last that
// it wrote to standard error, where it cannot be started, ends with an error or a signal, takes
// longer than `limit` (it is killed then), or writes more than 4 MiB.
Result<std::string> run_child(const std::vector<std::string>& arguments,
                              std::chrono::milliseconds limit);

}  // namespace strata::apps
