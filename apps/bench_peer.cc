#include "bench_peer.h"

#include <algorithm>
#include <cmath>

#include "base/printable.h"
#include "child_process.h"
#include "numbers.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kHelpLimit{30};
constexpr std::int32_t kContextGrain = 256;  // to which a peer may round a sequence's share

std::vector<std::string> split(std::string_view text, std::string_view separators) {
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
  return corrupt("what it wrote is no result of this test: {}", printable(text, 200));
}

// A finite number above 0, or 0.
double positive(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_number()) return 0;
  const double number = value->to_number<double>();
  return std::isfinite(number) && number > 0 ? number : 0;
}

std::optional<json::value> parse_json(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error) return std::nullopt;
  return value;
}

// Whether a result's keys, those of them that it has, hold these numbers.
bool agrees(const json::object& object,
            std::initializer_list<std::pair<const char*, std::int32_t>> wanted) {
  return std::ranges::all_of(wanted, [&](const auto& pair) {
    const json::value* value = object.if_contains(pair.first);
    return value == nullptr || (value->is_int64() && value->get_int64() == pair.second);
  });
}

double batch_of_json(std::string_view line, const BenchTest& test) {
  const auto value = parse_json(line);
  if (!value || !value->is_object()) return 0;
  const json::object& object = value->get_object();
  if (!agrees(object, {{"pp", test.depth}, {"tg", test.tokens}, {"pl", test.sequences}})) return 0;
  return positive(object, "speed_tg");
}

// | PP | TG | B | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s | T s | S t/s |
double batch_of_table(std::string_view line, const BenchTest& test) {
  constexpr std::size_t kColumns = 10;
  const std::vector<std::string> cells = split(line, "| \r");
  if (cells.size() != kColumns) return 0;
  const std::int32_t wanted[] = {test.depth, test.tokens, test.sequences};
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    std::int32_t number = 0;
    if (!parse_number(cells[i], number).ok() || number != wanted[i]) return 0;
  }
  double rate = 0;
  if (!parse_number(cells[7], rate).ok() || !std::isfinite(rate)) return 0;
  return std::max(rate, 0.0);
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
  const bool before = result.contains("n_depth");
  if (!agrees(result, {{"n_prompt", prompt   ? test.tokens
                                    : before ? 0
                                             : test.depth},
                       {"n_gen", prompt ? 0 : test.tokens},
                       {"n_depth", test.depth}}))
    return unreadable(text);
  const double rate = positive(result, "avg_ts");
  if (rate == 0) return unreadable(text);
  return rate;
}

Result<double> parse_peer_batch(std::string_view text, const BenchTest& test) {
  for (const std::string& line : split(text, "\n")) {
    const double rate =
        line.starts_with('{') ? batch_of_json(line, test) : batch_of_table(line, test);
    if (rate > 0) return rate;
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
    STRATA_ASSIGN(const std::string help, run_child({options.bench, "--help"}, kHelpLimit));
    peer.has_depth_ = help.find("--n-depth") != std::string::npos;
  }
  if (!options.batched.empty()) {
    STRATA_ASSIGN(const std::string help, run_child({options.batched, "--help"}, kHelpLimit));
    peer.has_jsonl_ = help.find("--output-format") != std::string::npos;
  }
  return peer;
}

bool Peer::takes(const BenchTest& test) const {
  return !(test.batched ? options_.batched : options_.bench).empty();
}

// An option that the user gives too is left to the user: said twice it means two tests.
std::vector<std::string> Peer::command(const std::string& program, const std::string& more) const {
  const std::vector<std::string> given = split(more, " ");
  std::vector<std::string> words = {program, "-m", model_};
  const auto add = [&](const char* name, const std::string& value) {
    if (std::ranges::find(given, name) == given.end()) words.insert(words.end(), {name, value});
  };
  add("-t", std::to_string(threads_));
  add("-b", std::to_string(step_rows_));
  add("-ub", std::to_string(step_rows_));
  words.insert(words.end(), given.begin(), given.end());
  return words;
}

Result<double> Peer::measure(const BenchTest& test) const {
  const auto rate = test.batched ? measure_batched(test) : measure_single(test);
  if (rate.ok()) return rate;
  return rate.status().with_context(
      fmt::format("{} of the peer {}", test.name(),
                  printable(test.batched ? options_.batched : options_.bench, 200)));
}

Result<double> Peer::measure_single(const BenchTest& test) const {
  std::vector<std::string> words = command(options_.bench, options_.bench_arguments);
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
  STRATA_ASSIGN(const std::string text, run_child(words, options_.limit));
  return parse_peer_json(text, test);
}

Result<double> Peer::measure_batched(const BenchTest& test) const {
  std::vector<std::string> words = command(options_.batched, options_.batched_arguments);
  const std::int64_t context =
      test.sequences * round_up<std::int64_t>(test.depth + test.tokens, kContextGrain);
  words.insert(words.end(),
               {"-c", std::to_string(context), "-npp", std::to_string(test.depth), "-ntg",
                std::to_string(test.tokens), "-npl", std::to_string(test.sequences)});
  if (has_jsonl_) words.insert(words.end(), {"--output-format", "jsonl"});
  STRATA_ASSIGN(const std::string text, run_child(words, options_.limit));
  return parse_peer_batch(text, test);
}

}  // namespace strata::apps
