// The measured limits of this machine, kept in the user's cache between programs.
#pragma once

#include <boost/json/object.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "probe/limits.h"

namespace strata::apps {

boost::json::object to_json(const MachineLimits& limits);
// What to_json() makes, else kCorrupt.
Result<MachineLimits> parse_limits(std::string_view text);

// Fails with kNotFound where there is no file, and with kCorrupt where it is damaged or of another
// version.
Result<MachineLimits> load_limits(const std::string& path);
// Replaces the file, or leaves it as it was.
Status save_limits(const MachineLimits& limits, const std::string& path);

struct MeasuredMachine {
  std::string cpu;
  const KernelTable* kernels = nullptr;  // the best that it runs
  std::string cores;                     // that it may use: describe_usable_cores()
  int threads = 0;                       // that compute unless somebody says otherwise
  std::string why_threads;               // so many, for people
};
Result<MeasuredMachine> this_machine();

// Where `strata profile` keeps them: a file for each share of the machine that control groups and
// bindings to processors leave, so that none takes the place of another's.
Result<std::string> limits_path(const MeasuredMachine& machine);
// Takes a few seconds and says so on standard error.
Result<MachineLimits> measure(const MeasuredMachine& machine);

// Those at `path`, where load_limits gives them and they are of this machine; else
// kInvalidArgument.
Result<MachineLimits> usable_limits(const std::string& path, const MeasuredMachine& machine);

// Those of this machine, nothing where there are none; fails where what is kept is not usable.
Result<std::optional<MachineLimits>> current_limits();

}  // namespace strata::apps
