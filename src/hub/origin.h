// Where a file of the cache came from: lines in "<file>.source" beside it, the third of which may
// be missing.
#pragma once

#include <string>

#include "base/status.h"

namespace strata {

struct Origin {
  std::string source;     // as users are shown it, without secrets; empty: unknown
  std::string validator;  // of what was fetched: an ETag, a date or a SHA-256; may be empty
  std::string sha256;     // of the file when it was whole; empty: unknown
};

std::string origin_path(const std::string& file);

// Of the file at that path; unknown where the lines are not there or are others.
Origin read_origin(const std::string& file);
// 64 hexadecimal digits that stand for a model's bytes: the SHA-256 that is known of the file, or
// else sampled_sha256().
Result<std::string> model_digest(const std::string& file);
Status write_origin(const std::string& file, const Origin& origin);

}  // namespace strata
