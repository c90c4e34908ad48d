// strata profile: measures what this machine can do at most, for strata bench to divide by.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <memory>

#include "commands.h"
#include "device/cpu/isa_select.h"
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

struct Options {
  bool as_json = false;
  int threads = 0;  // 0: all sizes of a team
  Isa isa = Isa::kBest;
};

Status show(const MachineLimits& limits, bool as_json) {
  return print(as_json ? boost::json::serialize(to_json(limits)) + "\n" : table(limits));
}

Result<int> profile_one(const Options& options) {
  STRATA_ASSIGN(const KernelTable* kernels, select_kernels(options.isa));
  const std::vector threads{options.threads};
  STRATA_ASSIGN(const MachineLimits limits, measure_limits(*kernels, threads));
  STRATA_TRY(show(limits, options.as_json));
  return 0;
}

Result<int> profile(const Options& options) {
  if (options.threads > 0) return profile_one(options);
  STRATA_ASSIGN(const MeasuredMachine machine, this_machine());
  STRATA_ASSIGN(const MachineLimits limits, measure(machine));
  STRATA_TRY(show(limits, options.as_json));
  STRATA_ASSIGN(const std::string path, limits_path(machine));
  STRATA_TRY(save_limits(limits, path));
  say("Saved for strata bench as {}.\n", path);
  return 0;
}

}  // namespace

void add_profile(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "profile", "Measure this machine: memory reads and arithmetic, by threads");
  command->add_flag("--json", options->as_json, "Print JSON, in bytes and operations per second");
  auto* const threads =
      add_threads_option(*command, options->threads, 1,
                         "With so many alone, which is not saved (default: from one up to as many "
                         "as the other commands take, which a control group may limit)");
  add_isa_option(*command, options->isa)->needs(threads);
  set_action(*command, exit_code, [options] { return profile(*options); });
}

}  // namespace strata::apps
