// The measured limits of this machine, kept in the user's cache between programs.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "probe/limits.h"

namespace strata::apps {

boost::json::object to_json(const MachineLimits& limits);

// Fails with kNotFound where there is no file, and with kCorrupt where it is damaged or of another
// version.
Result<MachineLimits> load_limits(const std::string& path);
// Replaces the file, or leaves it as it was.
Status save_limits(const MachineLimits& limits, const std::string& path);

// Where `strata profile` keeps them.
Result<std::string> limits_path();

// Those at `path`, nothing where there are none. Where they are damaged or of another processor
// `note` says so and there is nothing either.
std::optional<MachineLimits> usable_limits(const std::string& path, std::string& note);

// Those of limits_path(), with the note on standard error.
std::optional<MachineLimits> cached_limits();

}  // namespace strata::apps
