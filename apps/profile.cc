// strata profile: measures what this machine can do at most, for strata bench to divide by.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "commands.h"
#include "limits_cache.h"
#include "options.h"
#include "say.h"

namespace strata::apps {
namespace {

std::string table(const MachineLimits& limits) {
  constexpr double kGiga = 1e9;
  std::string text = fmt::format("{}, {} kernels\n{:>7}  {:>12}  {:>14}  {:>14}\n", limits.cpu,
                                 limits.isa, "THREADS", "MEMORY READ", "INT8", "F32");
  for (const ThreadLimits& of : limits.by_threads)
    text += fmt::format("{:>7}  {:>7.1f} GB/s  {:>8.1f} GOP/s  {:>8.1f} GOP/s\n", of.threads,
                        of.read_bandwidth / kGiga, of.int8_ops / kGiga, of.f32_ops / kGiga);
  return text;
}

Result<int> profile(bool in_json) {
  STRATA_ASSIGN(const MeasuredMachine machine, this_machine());
  STRATA_ASSIGN(const MachineLimits limits, measure(machine));
  STRATA_TRY(print(in_json ? boost::json::serialize(to_json(limits)) + "\n" : table(limits)));
  STRATA_ASSIGN(const std::string path, limits_path());
  STRATA_TRY(save_limits(limits, path));
  say("Saved for strata bench as {}.\n", path);
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  auto in_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "profile", "Measure this machine: memory reads and arithmetic, by threads");
  command->add_flag("--json", *in_json, "Print JSON, in bytes and operations per second");
  set_action(*command, exit_code, [in_json] { return profile(*in_json); });
}

}  // namespace strata::apps
