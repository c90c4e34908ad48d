#include "options.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/printable.h"
#include "probe/machine.h"
#include "probe/topology.h"
#include "say.h"

namespace strata::apps {
namespace {

constexpr std::size_t kMostErrorBytes = 4096;
constexpr int kMostThreads = 1024;
constexpr int kMostThreadsPerProcessor = 8;

// All threads of a team meet at every barrier, hundreds of times for a token.
Status check_threads(int threads) {
  const HardwareProfile profile = probe_machine();
  const int processors = processors_of(profile);
  if (threads > kMostThreadsPerProcessor * processors)
    return invalid_argument(
        "{} threads on {} processor{} would do little but wait for each other: "
        "{} at most",
        threads, processors, processors == 1 ? "" : "s", kMostThreadsPerProcessor * processors);
  if (threads <= most_useful_threads(profile)) return {};
  say("warning: {} threads {} wait for each other: fewer are faster\n", threads,
      most_useful_threads(profile) < processors
          ? fmt::format("where the control group allows {}", describe_usable_cores(profile))
          : fmt::format("on {} processor{}", processors, processors == 1 ? "" : "s"));
  return {};
}

}  // namespace

std::string refuse_empty(const std::string& text) {
  return text.empty() ? "its value is empty; give one, or leave the option out" : "";
}

Result<Bytes> parse_size(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  Bytes scale = 1;
  if (!unit.empty()) {
    const auto at = std::string_view("KMGT").find(static_cast<char>(std::toupper(unit.front())));
    if (at != std::string_view::npos) {
      scale = Bytes{1} << (10 * (at + 1));
      unit.remove_prefix(1);
    }
  }
  const bool known = unit.empty() || unit == "B" || unit == "iB";
  if (error != std::errc() || !known || !(value > 0) || value * static_cast<double>(scale) > 1e18)
    return invalid_argument("'{}' is no size; write for example 512M or 4G", printable(text, 32));
  return static_cast<Bytes>(value * static_cast<double>(scale));
}

CLI::Option* add_isa_option(CLI::App& command, Isa& isa) {
  return command
      .add_option_function<std::string>(
          "--isa", [&isa](const std::string& name) { isa = *isa_by_name(name); },
          "Kernels (default: the best that the processor runs)")
      ->check(CLI::IsMember(isa_names()));
}

CLI::Option* add_threads_option(CLI::App& command, int& threads, int least,
                                const std::string& description) {
  const auto take = [&threads](const int& number) {
    const Status status = check_threads(number);
    if (!status.ok()) throw CLI::ValidationError("--threads", status.message());
    threads = number;
  };
  return command.add_option_function<int>("--threads,-t", take, description)
      ->check(CLI::Range(least, kMostThreads));
}

void add_engine_options(CLI::App& command, EngineOptions& options) {
  add_threads_option(command, options.threads, 0,
                     "Threads that compute (default or 0: one per physical core, as far as a "
                     "control group allows)");
  add_isa_option(command, options.isa);
  command
      .add_option("--context,-c", options.context,
                  "Tokens of the context (default: the model's, as far as memory allows)")
      ->check(CLI::Range(1, 1 << 28));
  command.add_option_function<std::string>(
      "--memory",
      [&options](const std::string& text) {
        const auto size = parse_size(text);
        if (!size.ok()) throw CLI::ValidationError("--memory", size.status().message());
        options.memory = *size;
      },
      "Memory budget, e.g. 4G (default: 90 % of what the system has available)");
  command.add_flag("--reference", options.reference,
                   "Keep activations and cache in f32: slow, for comparison");
  command
      .add_option_function<std::string>(
          "--cache",
          [&options](const std::string& name) { options.cache = cache_format_by_name(name); },
          "Format of keys and values in the cache: f16, q8_0 or f32 (default: f16)")
      ->check(CLI::IsMember({"f16", "q8_0", "f32"}));
  command.add_option("--step-rows", options.step_rows, "Tokens computed per step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

void set_action(CLI::App& command, int& exit_code, std::function<Result<int>()> work) {
  command.callback([&exit_code, work = std::move(work)] {
    const Result<int> result = work();
    if (result.ok()) {
      exit_code = *result;
      return;
    }
    exit_code = 1;
    // That standard output fails, main() says.
    if (std::ferror(stdout) != 0 && result.status().code() == StatusCode::kIo) return;
    say("error: {}\n", printable(result.status().message(), kMostErrorBytes));
  });
}

}  // namespace strata::apps
