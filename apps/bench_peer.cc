#include "bench_peer.h"

#include <algorithm>

#include "base/printable.h"
#include "child_process.h"
#include "numbers.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kHelpLimit{30};
constexpr double kLowestRate = 1e-6;  // tokens/s
constexpr double kHighestRate = 1e9;
constexpr std::int32_t kContextGrain = 256;  // to which a peer may round a sequence's share

std::vector<std::string> split_at_any(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

Status unreadable(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return corrupt("it wrote nothing, and so no result of this test");
  return corrupt("what it wrote is no result of this test: {}", printable(text, 200));
}

bool is_rate(double value) { return value >= kLowestRate && value <= kHighestRate; }

Status no_rate(std::string_view field, std::string_view text) {
  return corrupt("{} is '{}', where a speed from {:g} to {:g} tokens/s belongs", field,
                 printable(text, 40), kLowestRate, kHighestRate);
}

Result<double> rate_of(const json::object& object, std::string_view field) {
  const json::value* value = object.if_contains({field.data(), field.size()});
  if (value == nullptr) return corrupt("`{}` is missing", field);
  const double rate = value->is_number() ? value->to_number<double>() : 0;
  if (!is_rate(rate)) return no_rate(field, json::serialize(*value));
  return rate;
}

std::optional<json::value> parse_json(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error) return std::nullopt;
  return value;
}

struct Wanted {
  const char* field;
  std::int32_t value;
};

// Whether a result is of the test that these fields tell of.
Status check_fields(const json::object& object, std::initializer_list<Wanted> wanted) {
  for (const auto& [field, number] : wanted) {
    const json::value* value = object.if_contains(field);
    if (value == nullptr) return corrupt("`{}` is missing", field);
    if (!value->is_int64() || value->get_int64() != number)
      return corrupt("`{}` is {} where {} was asked for", field,
                     printable(json::serialize(*value), 40), number);
  }
  return {};
}

// Nothing where the line is of no test or of another.
std::optional<Result<double>> batch_of_json(std::string_view line, const BenchTest& test) {
  const auto value = parse_json(line);
  if (!value || !value->is_object()) return std::nullopt;
  const json::object& object = value->get_object();
  if (!check_fields(object, {{"pp", test.depth}, {"tg", test.tokens}, {"pl", test.sequences}}).ok())
    return std::nullopt;
  return rate_of(object, "speed_tg");
}

// | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
std::optional<Result<double>> batch_of_table(std::string_view line, const BenchTest& test) {
  constexpr std::size_t kColumns = 10;
  const std::vector<std::string> cells = split_at_any(line, "| \r");
  if (cells.size() != kColumns) return std::nullopt;
  const std::int32_t wanted[] = {test.depth, test.tokens, test.sequences};
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    std::int32_t number = 0;
    if (!parse_number(cells[i], number).ok() || number != wanted[i]) return std::nullopt;
  }
  double rate = 0;
  if (!parse_number(cells[7], rate).ok() || !is_rate(rate)) return no_rate("S_TG t/s", cells[7]);
  return rate;
}

// Programs differ in the code that ends their help.
Result<std::vector<std::string>> words_of_help(const std::string& program,
                                               std::chrono::seconds limit) {
  STRATA_ASSIGN(const ChildOutput help,
                run_child({program, "--help"}, std::min(limit, kHelpLimit), ExitCodes::kAny));
  return split_at_any(help.text + "\n" + help.errors, " ,\t\r\n");
}

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

Result<double> parse_peer_json(std::string_view text, const BenchTest& test) {
  // Some write lines of their own before the array.
  const std::size_t start = text.starts_with('[') ? 0 : text.find("\n[") + 1;
  const auto value = parse_json(text.substr(std::min(start, text.size())));
  if (!value || !value->is_array()) return unreadable(text);
  const json::array& results = value->get_array();
  if (results.size() != 1 || !results.front().is_object()) return unreadable(text);
  const json::object& result = results.front().get_object();
  const bool prompt = test.kind == TestKind::kPrompt;
  const bool has_depth = result.contains("n_depth");
  if (has_depth) STRATA_TRY(check_fields(result, {{"n_depth", test.depth}}));
  const std::int32_t before = has_depth ? 0 : test.depth;
  STRATA_TRY(check_fields(
      result, {{"n_prompt", prompt ? test.tokens : before}, {"n_gen", prompt ? 0 : test.tokens}}));
  return rate_of(result, "avg_ts");
}

Result<double> parse_peer_batch(std::string_view text, const BenchTest& test) {
  for (const std::string& line : split_at_any(text, "\n")) {
    const auto rate = line.starts_with('{')   ? batch_of_json(line, test)
                      : line.starts_with('|') ? batch_of_table(line, test)
                                              : std::nullopt;
    if (rate) return *rate;
  }
  return unreadable(text);
}

Result<Peer> Peer::create(const PeerOptions& options, std::string model, int threads,
                          std::int32_t step_rows) {
  Peer peer;
  peer.options_ = options;
  peer.model_ = std::move(model);
  peer.threads_ = threads;
  peer.step_rows_ = step_rows;
  if (!options.bench.empty()) {
    STRATA_ASSIGN(const auto words, words_of_help(options.bench, options.limit));
    peer.has_depth_ = contains(words, "--n-depth");
  }
  if (!options.batched.empty()) {
    STRATA_ASSIGN(const auto words, words_of_help(options.batched, options.limit));
    peer.has_jsonl_ = contains(words, "--output-format");
  }
  return peer;
}

bool Peer::takes(const BenchTest& test) const {
  return !(test.batched ? options_.batched : options_.bench).empty();
}

// An option that the user gives too is left to the user: said twice it means two tests.
std::vector<std::string> Peer::command(const std::string& program, const std::string& more,
                                       std::initializer_list<Setting> settings) const {
  const std::vector<std::string> given = split_at_any(more, " ");
  std::vector<std::string> words = {program, "-m", model_};
  const auto add = [&](const char* name, std::int64_t value) {
    if (!contains(given, name)) words.insert(words.end(), {name, std::to_string(value)});
  };
  add("-t", threads_);
  add("-b", step_rows_);
  add("-ub", step_rows_);
  for (const auto& [name, value] : settings) add(name, value);
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

Result<double> Peer::measure(const BenchTest& test) const {
  auto rate = test.batched ? measure_batched(test) : measure_single(test);
  if (rate.ok()) return rate;
  return rate.status().with_context(
      fmt::format("{} of the peer {}", test.name(),
                  printable(test.batched ? options_.batched : options_.bench, 200)));
}

Result<double> Peer::measure_single(const BenchTest& test) const {
  std::vector<std::string> words = command(options_.bench, options_.bench_arguments, {});
  const std::string tokens = std::to_string(test.tokens);
  const std::string depth = std::to_string(test.depth);
  words.insert(words.end(), {"-r", "1", "-o", "json"});
  if (test.kind == TestKind::kPrompt)
    words.insert(words.end(), {"-p", tokens, "-n", "0"});
  else if (test.depth == 0)
    words.insert(words.end(), {"-p", "0", "-n", tokens});
  else if (has_depth_)
    words.insert(words.end(), {"-p", "0", "-n", tokens, "-d", depth});
  else
    words.insert(words.end(), {"-p", "0", "-n", "0", "-gp", depth + "," + tokens});
  STRATA_ASSIGN(const ChildOutput output, run_child(words, options_.limit));
  return parse_peer_json(output.text, test);
}

Result<double> Peer::measure_batched(const BenchTest& test) const {
  const std::int64_t context =
      test.sequences * round_up<std::int64_t>(test.depth + test.tokens, kContextGrain);
  std::vector<std::string> words =
      command(options_.batched, options_.batched_arguments, {{"-c", context}});
  words.insert(words.end(), {"-npp", std::to_string(test.depth), "-ntg",
                             std::to_string(test.tokens), "-npl", std::to_string(test.sequences)});
  if (has_jsonl_) words.insert(words.end(), {"--output-format", "jsonl"});
  STRATA_ASSIGN(const ChildOutput output, run_child(words, options_.limit));
  return parse_peer_batch(output.text + "\n" + output.errors, test);
}

}  // namespace strata::apps
