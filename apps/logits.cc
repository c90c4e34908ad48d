// strata logits: what a model computes for given tokens, for developers of models and of Strata.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>

#include "base/file.h"
#include "base/printable.h"
#include "commands.h"
#include "options.h"

namespace strata::apps {
namespace {

struct Options {
  std::string model;
  std::string tokens;
  std::string tokens_file;
  std::string positions;
  std::string output;
  std::int32_t greedy = 0;
  bool as_json = false;
  EngineOptions engine;
};

template <typename T>
Result<std::vector<T>> parse_numbers(std::string_view text, std::string_view what) {
  constexpr std::string_view kSeparators = " ,\t\r\n";
  std::vector<T> numbers;
  for (std::size_t at = text.find_first_not_of(kSeparators); at != std::string_view::npos;
       at = text.find_first_not_of(kSeparators, at)) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    T value{};
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc() || stop != text.data() + end)
      return invalid_argument("{}: '{}' is no number", what,
                              printable(text.substr(at, end - at), 32));
    numbers.push_back(value);
    at = end;
  }
  return numbers;
}

Result<std::vector<std::vector<TokenId>>> read_sequences(const Options& options) {
  std::vector<std::vector<TokenId>> sequences;
  if (!options.tokens.empty()) {
    STRATA_ASSIGN(auto tokens, parse_numbers<TokenId>(options.tokens, "--tokens"));
    sequences.push_back(std::move(tokens));
  } else {
    std::ifstream file(options.tokens_file);
    if (!file) return not_found("cannot open {}", printable(options.tokens_file));
    for (std::string line; std::getline(file, line);) {
      STRATA_ASSIGN(auto tokens, parse_numbers<TokenId>(line, options.tokens_file));
      if (!tokens.empty()) sequences.push_back(std::move(tokens));
    }
  }
  if (sequences.empty() || sequences.front().empty())
    return invalid_argument("no tokens are given; use --tokens \"1 2 3\" or --tokens-file FILE");
  return sequences;
}

Result<std::vector<Position>> positions_of(const Options& options, std::size_t length) {
  std::vector<Position> positions;
  if (options.positions == "all") {
    for (std::size_t p = 0; p < length; ++p) positions.push_back(static_cast<Position>(p));
    return positions;
  }
  STRATA_ASSIGN(positions, parse_numbers<Position>(options.positions, "--positions"));
  for (const Position position : positions)
    if (position < 0 || position >= static_cast<Position>(length))
      return invalid_argument(
          "--positions: {} is outside the {} tokens, whose positions are 0 to {}", position, length,
          length - 1);
  std::ranges::sort(positions);
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

// Receives one sequence's rows; they arrive in order of position.
class Receiver : public Sink {
 public:
  using RowTaker = std::function<Status(Position, std::span<const float>)>;
  explicit Receiver(RowTaker take) : take_(std::move(take)) {}

  void on_logits(Position position, std::span<const float> logits) override {
    if (status_.ok()) status_ = take_(position, logits);
  }
  void on_token(std::int32_t, TokenId token) override { generated.push_back(token); }
  void on_finish(std::int32_t, FinishReason reason, const Status& status) override {
    if (status_.ok()) status_ = status;
    if (reason == FinishReason::kContext)
      status_ = invalid_argument(
          "the context is full after {} of the greedy tokens; ask for a "
          "larger --context",
          generated.size());
    done_.set_value(status_);
  }
  Status wait() { return done_.get_future().get(); }

  std::vector<TokenId> generated;

 private:
  RowTaker take_;
  Status status_;
  std::promise<Status> done_;
};

Status run_sequence(Engine& engine, const Options& options, const std::vector<TokenId>& tokens,
                    const Receiver::RowTaker& take, std::vector<TokenId>& generated) {
  Request request;
  request.tokens = tokens;
  request.sampling.temperature = 0;
  request.max_tokens = options.greedy;
  STRATA_ASSIGN(request.logit_positions, positions_of(options, tokens.size()));
  const auto receiver = std::make_shared<Receiver>(take);
  STRATA_TRY(engine.submit(std::move(request), receiver).status());
  STRATA_TRY(receiver->wait());
  generated = receiver->generated;
  return {};
}

// Raw little-endian f32 rows, in order of line and position.
Status write_rows(Engine& engine, const Options& options,
                  const std::vector<std::vector<TokenId>>& sequences) {
  STRATA_ASSIGN(File out, File::create(options.output));
  for (const auto& tokens : sequences) {
    std::vector<TokenId> generated;
    STRATA_TRY(run_sequence(
        engine, options, tokens,
        [&](Position, std::span<const float> row) {
          return out.write({reinterpret_cast<const std::uint8_t*>(row.data()), row.size_bytes()});
        },
        generated));
  }
  return out.close();
}

// One object per sequence. Written by hand: shortest digits that read back as the same float.
Status print_json(Engine& engine, const Options& options,
                  const std::vector<std::vector<TokenId>>& sequences) {
  for (const auto& tokens : sequences) {
    std::string text = "{\"logits\": {";
    bool first = true;
    std::vector<TokenId> generated;
    STRATA_TRY(run_sequence(
        engine, options, tokens,
        [&](Position position, std::span<const float> row) {
          for (const float value : row)
            if (!std::isfinite(value))
              return internal_error("the logits at position {} are not finite", position);
          text += fmt::format("{}\"{}\": [{}]", first ? "" : ", ", position,
                              fmt::join(row.begin(), row.end(), ", "));
          first = false;
          return Status();
        },
        generated));
    text += fmt::format("}}, \"greedy\": [{}]}}\n", fmt::join(generated, ", "));
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
      return io_error("cannot write to standard output");
  }
  return {};
}

Result<int> run(Options options) {
  STRATA_ASSIGN(const auto sequences, read_sequences(options));
  std::size_t longest = 0;
  for (const auto& tokens : sequences) longest = std::max(longest, tokens.size());
  if (options.engine.context == 0)
    options.engine.context = static_cast<std::int32_t>(longest) + std::max(options.greedy, 1);
  options.engine.logit_rows = std::min(options.engine.step_rows, 32);
  STRATA_ASSIGN(const auto engine, Engine::load(options.model, options.engine, {}));
  for (const auto& tokens : sequences) STRATA_TRY(positions_of(options, tokens.size()).status());
  STRATA_TRY(options.output.empty() ? print_json(*engine, options, sequences)
                                    : write_rows(*engine, options, sequences));
  return 0;
}

}  // namespace

void add_logits(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("logits", "Print the logits a model computes for tokens");
  command->add_option("model", options->model, "GGUF file")->required();
  auto* tokens = command->add_option("--tokens", options->tokens,
                                     "Token ids, e.g. \"1 2 3\"; nothing is added to them");
  command->add_option("--tokens-file", options->tokens_file, "File of ids, one sequence per line")
      ->excludes(tokens);
  command->add_option("--positions", options->positions,
                      "Positions whose logits are wanted, e.g. 0,2, or all");
  command->add_option("--greedy", options->greedy, "Tokens to generate, always the largest logit")
      ->check(CLI::Range(0, 1 << 24));
  command->add_option("--output,-o", options->output,
                      "Write raw little-endian f32 rows here instead of JSON");
  command->add_flag("--json", options->as_json, "JSON, which is the default");
  add_engine_options(*command, options->engine);
  set_action(*command, exit_code, [options] { return run(*options); });
}

}  // namespace strata::apps
