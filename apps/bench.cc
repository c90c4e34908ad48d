// strata bench: how fast a model runs on this machine, alone or beside another program.
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "base/printable.h"
#include "bench_peer.h"
#include "bench_run.h"
#include "bench_serve.h"
#include "child_process.h"
#include "commands.h"
#include "describe.h"
#include "device/cpu/isa_select.h"
#include "limits_cache.h"
#include "model_stores.h"
#include "models/all.h"
#include "numbers.h"
#include "options.h"
#include "page_cache.h"
#include "probe/machine.h"
#include "probe/topology.h"
#include "progress.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

// How the work of a test is counted; see WorkCounter.
constexpr std::string_view kBytesCounted =
    "weights per step, experts as if equally likely; cache per sequence";
constexpr std::string_view kOperationsCounted = "matrix products, 2 per multiply-add";
constexpr std::int32_t kPeerLimit = 1800;
constexpr std::chrono::seconds kProfileLimit{60};
constexpr double kMostPlausibleShare = 2;  // machines change by the minute, but not more

struct Options {
  std::string model;
  std::vector<std::int32_t> prompts = {512};
  std::vector<std::int32_t> generations = {128};
  std::vector<std::int32_t> depths = {0};
  std::vector<std::int32_t> batches;
  std::int32_t batch_depth = 128;
  std::int32_t repetitions = 5;
  std::uint64_t seed = 1;
  bool as_json = false;
  bool as_csv = false;
  bool with_limits = false;
  std::string output;
  PeerOptions peer;
  std::optional<std::int32_t> peer_limit;
  EngineOptions engine;
};

// First the tests of single sequences, then those of batches, which take another cache.
std::vector<std::vector<BenchTest>> tests_of(const Options& options) {
  std::vector<BenchTest> single;
  std::vector<BenchTest> batched;
  for (const std::int32_t tokens : options.prompts)
    if (tokens > 0) single.push_back({TestKind::kPrompt, tokens});
  for (const std::int32_t tokens : options.generations) {
    if (tokens == 0) continue;
    for (const std::int32_t depth : options.depths)
      single.push_back({TestKind::kGenerate, tokens, depth});
    for (const std::int32_t sequences : options.batches)
      batched.push_back({TestKind::kGenerate, tokens, options.batch_depth, sequences, true});
  }
  std::vector<std::vector<BenchTest>> groups;
  for (auto& group : {single, batched})
    if (!group.empty()) groups.push_back(group);
  return groups;
}

std::string today() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string file_name(const std::string& path) {
  return printable(std::filesystem::path(path).filename().string(), 200);
}

json::object settings_of(const Options& options) {
  json::object settings{{"repetitions", options.repetitions},
                        {"step_rows", options.engine.step_rows},
                        {"reference", options.engine.reference},
                        {"cache", json::string(to_string(options.engine.cache_format()))},
                        {"seed", options.seed},
                        {"bytes_counted", json::string(kBytesCounted)},
                        {"operations_counted", json::string(kOperationsCounted)}};
  const auto add = [&](const char* key, const std::string& program, const std::string& arguments) {
    if (!program.empty())
      settings[key] = json::object{
          {"name", options.peer.name.empty() ? file_name(program) : printable(options.peer.name)},
          {"arguments", replace_invalid_utf8(arguments)}};
  };
  add("peer", options.peer.bench, options.peer.bench_arguments);
  add("peer_batched", options.peer.batched, options.peer.batched_arguments);
  return settings;
}

// What `strata show` says, as far as it bears on the speed.
json::object model_of(const ModelManifest& manifest) {
  const json::object all = describe(manifest, false);
  json::object model{{"file", file_name(manifest.file().paths().front())}};
  for (const char* key : {"name", "architecture", "parameters", "tensor_bytes", "file_bytes",
                          "bits_per_weight", "formats", "experts", "experts_used"})
    if (const json::value* value = all.if_contains(key)) model[key] = *value;
  return model;
}

class Bench {
 public:
  Bench(const Options& options, std::string path) : options_(options), path_(std::move(path)) {}

  Result<BenchReport> run();

 private:
  Status describe_machine();
  void take_limits(const MachineLimits& measured);
  Status run_group(const std::vector<BenchTest>& tests, bool first);
  EngineOptions engine_options(const std::vector<BenchTest>& tests) const;
  Status load(const EngineOptions& options, std::vector<double>* seconds = nullptr);
  Status time_loads(const EngineOptions& options);
  Result<BenchLimits> measure_limits() const;
  Status run_test(BenchRunner& runner, const BenchTest& test);

  const Options& options_;
  const std::string path_;
  Peer peer_;
  std::unique_ptr<Engine> engine_;
  BenchReport report_;
};

Status Bench::describe_machine() {
  STRATA_ASSIGN(const KernelTable* kernels, select_kernels(options_.engine.isa));
  report_.machine = {cpu_name(), kernels->name, probe_machine().physical_cores,
                     options_.engine.threads, memory_total()};
  if (options_.with_limits) return {};
  const auto limits = current_limits();
  if (!limits.ok()) {
    say("note: {}; speeds are given without their shares of the machine's\n",
        limits.status().message());
  } else if (!*limits) {
    say("note: strata profile, once, or --limits would give the speeds as shares of the "
        "machine's\n");
  } else {
    take_limits(**limits);
  }
  return {};
}

void Bench::take_limits(const MachineLimits& measured) {
  const BenchMachine& machine = report_.machine;
  report_.limits = limits_of(measured, machine);
  if (!report_.limits) {
    const int most = measured.by_threads.back().threads;
    say("note: strata profile measured with up to {} thread{}, where {} are asked for: speeds are "
        "given without their shares of the machine's; --limits would give them\n",
        most, most == 1 ? "" : "s", machine.threads);
    return;
  }
  if (report_.limits->threads != machine.threads)
    say("note: the shares are of what {} threads do, the next that strata profile measured; "
        "--limits would measure with {}\n",
        report_.limits->threads, machine.threads);
  if (measured.isa != machine.isa)
    say("note: strata profile measured with {} kernels: no share of the operations is given; "
        "--limits would\n",
        measured.isa);
}

EngineOptions Bench::engine_options(const std::vector<BenchTest>& tests) const {
  EngineOptions engine = options_.engine;
  for (const BenchTest& test : tests) {
    engine.context = std::max(engine.context, context_of(test, engine.step_rows));
    engine.sequences = std::max(engine.sequences, test.sequences);
  }
  engine.running = std::max(engine.running, engine.sequences);
  engine.logit_rows = std::max(engine.logit_rows, engine.sequences);
  // Every row is computed, and as fast as it can be.
  engine.prefix_cache = false;
  engine.interactive_slowdown = 0;
  engine.queue = std::max(engine.queue, static_cast<std::size_t>(engine.sequences));
  return engine;
}

Status Bench::load(const EngineOptions& options, std::vector<double>* seconds) {
  engine_.reset();
  const auto start = std::chrono::steady_clock::now();
  Progress progress("loading");
  STRATA_ASSIGN(engine_, Engine::load(path_, options, [&](Bytes done, Bytes total) {
                  progress.update(done, total);
                  return true;
                }));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (seconds != nullptr) seconds->push_back(took.count());
  return {};
}

// In turn with the file's pages in memory and, where the system forgets them, from the disk.
Status Bench::time_loads(const EngineOptions& options) {
  const auto of_file = engine_->manifest().file().paths();
  const std::vector<std::string> paths(of_file.begin(), of_file.end());
  bool cold = true;
  for (std::int32_t i = 0; i < options_.repetitions; ++i) {
    cold = cold && std::ranges::all_of(paths, drop_pages);
    if (cold) STRATA_TRY(load(options, &report_.cold_load_seconds));
    STRATA_TRY(load(options, &report_.load_seconds));
  }
  if (cold) return {};
  report_.cold_load_seconds.clear();
  say("note: no load was measured cold, as the system keeps the file in memory\n");
  return {};
}

// By a process of its own, whose memory is not counted as ours.
Result<BenchLimits> Bench::measure_limits() const {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return io_error("/proc/self/exe: {}", error.message());
  const BenchMachine& machine = report_.machine;
  STRATA_ASSIGN(const ChildOutput output,
                run_child({program.string(), "profile", "--json", "--threads",
                           std::to_string(machine.threads), "--isa", machine.isa},
                          kProfileLimit));
  STRATA_ASSIGN(const MachineLimits limits, parse_limits(output.text));
  const auto of_threads = limits_of(limits, machine);
  return of_threads ? Result(*of_threads) : internal_error("strata profile measured other threads");
}

// One repetition after the other, limits, ours and the peer's in turn, so that what slows the
// machine for a while slows all. The first run of ours counts for nothing; a deep one starts
// shallow.
Status Bench::run_test(BenchRunner& runner, const BenchTest& test) {
  BenchTest warm_up = test;
  if (!test.batched) warm_up.depth = 0;
  STRATA_TRY(runner.measure(warm_up).status());
  BenchRow row;
  row.test = test;
  Progress progress(test.name());
  for (std::int32_t i = 0; i < options_.repetitions; ++i) {
    progress.update(static_cast<std::uint64_t>(i),
                    static_cast<std::uint64_t>(options_.repetitions));
    if (options_.with_limits) {
      STRATA_ASSIGN(const BenchLimits limits, measure_limits());
      row.limits.push_back(limits);
    }
    STRATA_ASSIGN(const Sample sample, runner.measure(test));
    row.samples.push_back(sample);
    if (!peer_.takes(test)) continue;
    STRATA_ASSIGN(const double rate, peer_.measure(test));
    row.peer.push_back(rate);
  }
  report_.rows.push_back(std::move(row));
  return {};
}

Status Bench::run_group(const std::vector<BenchTest>& tests, bool first) {
  const EngineOptions options = engine_options(tests);
  STRATA_TRY(load(options));
  if (first) STRATA_TRY(time_loads(options));
  for (const std::string& note : engine_->plan().notes) say("note: {}\n", note);
  report_.model = model_of(engine_->manifest());
  report_.file_bytes = engine_->manifest().file().total_bytes();
  STRATA_ASSIGN(const Graph graph, build_graph(engine_->manifest()));
  STRATA_ASSIGN(WorkCounter work, WorkCounter::create(graph, options.cache_format()));
  BenchRunner runner(*engine_, std::move(work), options_.seed);
  for (const BenchTest& test : tests) STRATA_TRY(run_test(runner, test));
  return {};
}

Result<BenchReport> Bench::run() {
  report_.date = today();
  report_.settings = settings_of(options_);
  STRATA_TRY(describe_machine());
  STRATA_ASSIGN(peer_, Peer::create(options_.peer, path_, options_.engine.threads,
                                    options_.engine.step_rows));
  const auto groups = tests_of(options_);
  for (const auto& tests : groups) STRATA_TRY(run_group(tests, &tests == &groups.front()));
  report_.peak_resident = peak_resident_bytes();
  return std::move(report_);
}

Status check(const Options& options) {
  if (tests_of(options).empty())
    return invalid_argument("nothing is asked for; name --prompt or --generate");
  for (const std::int32_t sequences : options.batches)
    if (sequences >= options.engine.step_rows)
      return invalid_argument(
          "--batch {} leaves no row of a step for prompts; ask for more "
          "--step-rows than {}",
          sequences, options.engine.step_rows);
  const PeerOptions& peer = options.peer;
  if (peer.bench.empty() && peer.batched.empty() && (!peer.name.empty() || options.peer_limit))
    return invalid_argument(
        "--peer-name and --peer-limit are of a peer; name it with --peer or --peer-batched");
  return options.output.empty() ? Status() : check_new_file(options.output);
}

Status write(const Options& options, const std::string& text) {
  if (options.output.empty()) return print(text);
  STRATA_ASSIGN(File file, create_output(options.output));
  STRATA_TRY(file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
  return file.close();
}

// As many as the other commands take.
int usual_threads() {
  const HardwareProfile profile = probe_machine();
  const int threads = default_threads(profile);
  if (std::min<double>(threads, usable_cores(profile)) < profile.physical_cores)
    say("note: {} thread{}: {}\n", threads, threads == 1 ? "" : "s",
        explain_default_threads(profile));
  return threads;
}

// Says so where a share is beyond what a slow minute explains.
void note_stale_limits(const BenchReport& report) {
  for (const BenchRow& row : report.rows) {
    const Shares shares = shares_of(row, report.limits);
    const double most = std::max(shares.read, shares.int8);
    if (!row.limits.empty() || most <= kMostPlausibleShare) continue;
    say("note: {} reaches {:.0f} % of a limit: the limits look stale (strata profile measures "
        "anew), or the model fits the processor's caches\n",
        row.test.name(), 100 * most);
    return;
  }
}

Result<int> run(Options options) {
  STRATA_TRY(check(options));
  options.peer.limit = std::chrono::seconds(options.peer_limit.value_or(kPeerLimit));
  if (options.engine.threads == 0) options.engine.threads = usual_threads();
  STRATA_ASSIGN(const std::string path, find_model(options.model));
  STRATA_ASSIGN(const BenchReport report, Bench(options, path).run());
  const auto format = options.as_json ? bench_json : options.as_csv ? bench_csv : bench_table;
  STRATA_TRY(write(options, format(report)));
  note_stale_limits(report);
  return 0;
}

// Numbers between commas. Fails where one is missing, out of range or given twice, and where 0
// does not stand alone although it means none.
Status parse_list(std::span<const std::string> texts, std::int32_t least, std::int32_t most,
                  bool zero_is_none, std::vector<std::int32_t>& numbers) {
  numbers.clear();
  for (const std::string& text : texts)
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      std::int32_t number = 0;
      if (!parse_number(std::string_view(text).substr(at, end - at), number).ok() ||
          number < least || number > most)
        return invalid_argument("'{}' is no list of numbers from {} to {} such as 128,512",
                                printable(text, 32), least, most);
      if (std::ranges::find(numbers, number) != numbers.end())
        return invalid_argument("{} is given twice", number);
      numbers.push_back(number);
      at = end + 1;
    }
  if (zero_is_none && numbers.size() > 1 && std::ranges::find(numbers, 0) != numbers.end())
    return invalid_argument("0 means none, and so stands alone");
  return {};
}

void add_tests(CLI::App& command, Options& options) {
  constexpr std::int32_t kMost = 1 << 24;
  const auto add_list = [&](const char* name, std::vector<std::int32_t>& values, std::int32_t least,
                            std::int32_t most, const char* help) {
    const bool zero_is_none = &values == &options.prompts || &values == &options.generations;
    const std::string first_name = std::string(name).substr(0, std::string_view(name).find(','));
    const auto take = [=, &values](const std::vector<std::string>& texts) {
      const Status status = parse_list(texts, least, most, zero_is_none, values);
      if (!status.ok()) throw CLI::ValidationError(first_name, status.message());
    };
    command.add_option_function<std::vector<std::string>>(name, take, help)
        ->type_name("LIST")
        ->allow_extra_args(false);
  };
  add_list("--prompt,-p", options.prompts, 0, kMost,
           "Prompts of so many tokens, e.g. 128,512; 0: none (default: 512)");
  add_list("--generate,-n", options.generations, 0, kMost,
           "Generations of so many tokens; 0: none (default: 128)");
  add_list("--depth,-d", options.depths, 0, kMost,
           "Tokens in the cache before a generation, e.g. 0,8192 (default: 0)");
  add_list("--batch", options.batches, 1, 4096,
           "Generate for so many sequences at once, e.g. 1,4,16");
  command.add_option("--batch-depth", options.batch_depth, "Tokens of each prompt of a batch")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  command.add_option("--repetitions,-r", options.repetitions, "Timed runs of every test")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  const auto take_seed = [&options](const std::string& text) {
    const Status status = parse_number(text, options.seed);
    if (!status.ok()) throw CLI::ValidationError("--seed", status.message());
  };
  command.add_option_function<std::string>(
      "--seed", take_seed,
      fmt::format("Of the random prompts and choices (default: {})", options.seed));
}

// llama-bench has formats there.
std::string refuse_format_name(const std::string& text) {
  for (const char* format : {"json", "jsonl", "csv", "md", "sql"})
    if (text == format)
      return fmt::format("it names a new file; for a format say --json or --csv, or ./{}", text);
  return {};
}

void add_peer(CLI::App& command, Options& options) {
  auto* const peer =
      command
          .add_option("--peer", options.peer.bench,
                      "Path of a llama-bench, to run the same tests in turn with ours")
          ->check(refuse_empty);
  command
      .add_option("--peer-args", options.peer.bench_arguments,
                  "More arguments for it, e.g. \"-rtr 1\"")
      ->needs(peer);
  auto* const batched = command
                            .add_option("--peer-batched", options.peer.batched,
                                        "Path of a llama-batched-bench, likewise for --batch")
                            ->check(refuse_empty)
                            ->needs("--batch");
  command
      .add_option("--peer-batched-args", options.peer.batched_arguments, "More arguments for that")
      ->needs(batched);
  command.add_option("--peer-name", options.peer.name, "What reports call it (default: its file)")
      ->check(refuse_empty);
  command
      .add_option("--peer-limit", options.peer_limit,
                  fmt::format("Seconds that one run of a peer may take (default: {})", kPeerLimit))
      ->check(CLI::Range(1, 86400));
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a model runs");
  command->add_option("model", options->model, "GGUF file, or the name of a cached model");
  add_tests(*command, *options);
  auto* as_json = command->add_flag("--json", options->as_json, "Print one JSON object");
  command->add_flag("--csv", options->as_csv, "Print a line per test")->excludes(as_json);
  command->add_option("--output,-o", options->output, "Write to this new file instead")
      ->check(refuse_empty)
      ->check(refuse_format_name);
  command->add_flag("--limits", options->with_limits,
                    "Measure the machine's limits in turn with every repetition, instead of taking "
                    "those of strata profile");
  add_peer(*command, *options);
  add_engine_options(*command, options->engine);
  command->remove_option(command->get_option("--context"));  // what the tests take
  command->footer(fmt::format("Bytes: {}.\nOperations: {}.", kBytesCounted, kOperationsCounted));
  const CLI::App* const serve = add_bench_serve(*command, exit_code);
  set_action(*command, exit_code, [options, serve, &exit_code]() -> Result<int> {
    if (serve->parsed()) return exit_code;  // it has done the work
    if (options->model.empty()) throw CLI::RequiredError("model");
    return run(*options);
  });
}

}  // namespace strata::apps
